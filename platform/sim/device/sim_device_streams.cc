// Streams and events of the simulated device.

#include "strata/platform/sim/device/sim_device.h"
#include "strata/platform/sim/device/sim_platform.h"
#include "strata/platform/sim/faults/cost_table.h"
#include "strata/platform/sim/streams/host_function_scope.h"

namespace strata::sim {
namespace {

constexpr unsigned kKnownEventFlags =
    1u | kEventDisableTiming | kEventInterprocess;  // 1: blocking wait

// The calling thread's stream on the device of its last call. Without a
// destructor, because destructors at the end of a thread or of the program may
// use it.
struct LastPerThread {
  std::uint64_t instance = 0;
  std::uint64_t uid = 0;
};
thread_local constinit LastPerThread t_last_per_thread;

bool ValidEventFlags(unsigned flags) {
  if ((flags & ~kKnownEventFlags) != 0) return false;
  return (flags & kEventInterprocess) == 0 ||
         (flags & kEventDisableTiming) != 0;
}

}  // namespace

Status SimDevice::DoStreamCreate(Call* seen, Stream* stream, unsigned flags) {
  if (stream == nullptr || (flags & ~unsigned{kStreamNonBlocking}) != 0) {
    return Status::kInvalidValue;
  }
  std::lock_guard lock(mutex_);
  *stream = streams_.Create();
  scheduler_.AddStream(*stream, flags == kStreamNonBlocking
                                    ? StreamKind::kNonBlocking
                                    : StreamKind::kBlocking);
  seen->ptr = reinterpret_cast<std::uintptr_t>(stream->handle);
  seen->stream_uid = stream->uid;
  return Status::kSuccess;
}

Status SimDevice::DoStreamDestroy(Call*, Stream stream) {
  std::lock_guard lock(mutex_);
  CaptureSet& captures = platform_->captures();
  // A driver allows this, and the process dies at the next wait for the
  // device. The nodes that a fork captured stay.
  if (SimCapture* const begun = captures.FindBegun(stream)) {
    captures.Invalidate(begun);
    return Status::kStreamCaptureUnsupported;
  }
  if (!streams_.Destroy(stream)) return Status::kInvalidResourceHandle;
  scheduler_.DestroyStream(stream);
  return Status::kSuccess;
}

Stream SimDevice::LegacyStream() {
  Stream stream;
  stream.handle = kLegacyStreamHandle;
  stream.device = ordinal_;
  stream.uid = kLegacyStreamUid;
  return stream;
}

Stream SimDevice::PerThreadStream() {
  Stream stream;
  stream.handle = kPerThreadStreamHandle;
  stream.device = ordinal_;
  if (t_last_per_thread.instance == instance_) {
    stream.uid = t_last_per_thread.uid;
    return stream;
  }
  std::lock_guard lock(mutex_);
  bool is_new = false;
  stream.uid = streams_.PerThread(CallingThreadNumber(), &is_new);
  if (is_new) scheduler_.AddStream(stream, StreamKind::kBlocking);
  t_last_per_thread = {instance_, stream.uid};
  return stream;
}

Status SimDevice::DoWrapStream(Call* seen, void* handle, Stream* stream) {
  if (stream == nullptr) return Status::kInvalidValue;
  if (handle == nullptr || handle == kLegacyStreamHandle) {
    *stream = LegacyStream();
  } else if (handle == kPerThreadStreamHandle) {
    *stream = PerThreadStream();
  } else {
    std::lock_guard lock(mutex_);
    if (!streams_.Find(handle, stream)) return Status::kInvalidResourceHandle;
    if (!scheduler_.IsBlocking(*stream)) seen->value = kStreamNonBlocking;
  }
  seen->stream_uid = stream->uid;
  return Status::kSuccess;
}

Status SimDevice::DoStreamSynchronize(Call*, Stream stream) {
  SimLock lock(mutex_);
  if (!streams_.Accepts(stream)) return Status::kInvalidResourceHandle;
  const StreamSnapshot waited = scheduler_.Submitted(stream);
  scheduler_.AwaitStream(stream, &lock);
  // According to reports, the legacy stream does not do this: P6.
  if (stream.uid != kLegacyStreamUid) TellPools(waited);
  return sticky_error();
}

Status SimDevice::DoStreamQuery(Call*, Stream stream) {
  SimLock lock(mutex_);
  if (!streams_.Accepts(stream)) return Status::kInvalidResourceHandle;
  const bool done = scheduler_.PollStream(stream, &lock);
  return done ? sticky_error() : Status::kNotReady;
}

Status SimDevice::DoStreamWaitEvent(Call* seen, Stream stream, Event event,
                                    unsigned flags) {
  std::lock_guard lock(mutex_);
  if (!streams_.Accepts(stream)) return Status::kInvalidResourceHandle;
  const StreamSnapshot* recorded = FindEvent(event);
  if (recorded == nullptr) return Status::kInvalidResourceHandle;
  SimCapture* capture = CaptureOf(stream);
  if (flags != 0) {
    return AddEventNode(capture, stream, flags, WaitAction{event}, seen);
  }
  if (capture == nullptr && !platform_->captures().IsCaptured(event)) {
    scheduler_.WaitFor(stream, *recorded);
    return Status::kSuccess;
  }
  return platform_->captures().Wait(stream, scheduler_.IsBlocking(stream),
                                    event, recorded->point.stream_uid != 0);
}

// kEventExternal is valid only in a capture (cuda_semantics.md E9).
Status SimDevice::AddEventNode(SimCapture* capture, const Stream& stream,
                               unsigned flags, GraphAction action,
                               CallRecord* seen) {
  if (capture == nullptr || flags != kEventExternal) {
    return Status::kInvalidValue;
  }
  return AddNode(capture, stream, 0, std::move(action), seen);
}

Status SimDevice::DoLaunchHostFunc(Call* seen, Stream stream,
                                   HostFunction function, void* argument) {
  if (function == nullptr) return Status::kInvalidValue;
  SimLock lock(mutex_);
  if (!streams_.Accepts(stream)) return Status::kInvalidResourceHandle;
  const std::uint64_t cost_ns =
      OperationCostNs(OperationKind::kHostFunction, 0);
  if (SimCapture* capture = CaptureOf(stream)) {
    return AddNode(capture, stream, cost_ns, HostAction{function, argument},
                   seen);
  }
  const auto run = [this, function, argument](SimLock* held) {
    if (sticky_error() != Status::kSuccess) return;  // S11
    CallHostFunction(function, argument, held);
  };
  scheduler_.SubmitUnlocked(stream, cost_ns, run, &lock);
  return Status::kSuccess;
}

void SimDevice::CallHostFunction(HostFunction function, void* argument,
                                 SimLock* lock) {
  lock->unlock();
  {
    HostFunctionScope scope;
    function(argument);
  }
  lock->lock();
}

Status SimDevice::DoEventCreate(Call* seen, Event* event, unsigned flags) {
  if (event == nullptr || !ValidEventFlags(flags)) return Status::kInvalidValue;
  std::lock_guard lock(mutex_);
  *event = events_.Create((flags & kEventDisableTiming) == 0);
  seen->ptr = NumberOf(*event);
  return Status::kSuccess;
}

Status SimDevice::DoEventDestroy(Call*, Event event) {
  SimDevice* owner = platform_->OwnerOf(event);
  if (owner == nullptr) return Status::kInvalidResourceHandle;
  std::lock_guard lock(owner->mutex_);
  if (!owner->events_.Destroy(event)) return Status::kInvalidResourceHandle;
  platform_->captures().ForgetEvent(event);
  return Status::kSuccess;
}

Status SimDevice::DoEventRecord(Call* seen, Event event, Stream stream,
                                unsigned flags) {
  std::lock_guard lock(mutex_);
  if (!streams_.Accepts(stream)) return Status::kInvalidResourceHandle;
  // The event must be of this device: E4.
  EventState* recorded = events_.Find(event);
  if (recorded == nullptr) return Status::kInvalidResourceHandle;
  SimCapture* capture = CaptureOf(stream);
  if (flags != 0) {
    return AddEventNode(capture, stream, flags, RecordAction{event}, seen);
  }
  if (capture != nullptr) {
    return platform_->captures().RecordEvent(event, stream);
  }
  NoteRecord(stream, recorded);
  platform_->captures().ForgetEvent(event);
  return Status::kSuccess;
}

void SimDevice::NoteRecord(const Stream& stream, EventState* event) {
  scheduler_.Snapshot(stream, event);
  const bool is_timed = scheduler_.is_timed();
  event->called_ns = is_timed ? 0 : NowNs();
  event->worked_ns = is_timed ? NowNs() : scheduler_.WorkedNs(stream);
  event->done_ns = event->keeps_time ? scheduler_.Watch(event->point) : nullptr;
}

Status SimDevice::DoEventQuery(Call*, Event event) {
  SimLock lock(mutex_);
  const StreamSnapshot* recorded = FindEvent(event);
  if (recorded == nullptr) return Status::kInvalidResourceHandle;
  const bool done = scheduler_.Poll(recorded->point, &lock);
  return done ? sticky_error() : Status::kNotReady;
}

Status SimDevice::DoEventSynchronize(Call*, Event event) {
  SimLock lock(mutex_);
  const StreamSnapshot* recorded = FindEvent(event);
  if (recorded == nullptr) return Status::kInvalidResourceHandle;
  const StreamSnapshot waited = *recorded;  // it may be recorded again
  scheduler_.Await(waited.point, &lock);
  platform_->OwnerOf(event)->TellPools(waited);
  return sticky_error();
}

Status SimDevice::EventElapsed(Event start, Event end, std::int64_t* ns) {
  if (ns == nullptr) return Status::kInvalidValue;
  SimLock lock(mutex_);
  EventState* const first = FindEvent(start);
  EventState* const last = FindEvent(end);
  if (first == nullptr || last == nullptr ||
      DeviceOfEvent(start) != DeviceOfEvent(end)) {
    return Status::kInvalidResourceHandle;
  }
  for (const Event event : {start, end}) {
    if (platform_->captures().IsCaptured(event)) return Status::kCapturedEvent;
  }
  for (const EventState* const event : {first, last}) {
    if (!event->keeps_time || event->point.stream_uid == 0) {
      return Status::kInvalidResourceHandle;
    }
  }
  for (const EventState* const event : {first, last}) {
    if (!scheduler_.Poll(event->point, &lock)) return Status::kNotReady;
  }
  *ns = static_cast<std::int64_t>(last->time_ns()) -
        static_cast<std::int64_t>(first->time_ns());
  return sticky_error();
}

void SimDevice::TellPools(const StreamSnapshot& waited) {
  pools_.OnSynchronize(scheduler_, [&](const StreamPoint& point) {
    return scheduler_.IsIn(waited, point);
  });
}

EventState* SimDevice::FindEvent(Event event) const {
  SimDevice* owner = platform_->OwnerOf(event);
  return owner == nullptr ? nullptr : owner->events_.Find(event);
}

}  // namespace strata::sim
