// Streams and events of the simulated device. Work is complete when its call
// returns, so what is left of a wait is to refuse what does not exist.

#include <unordered_map>

#include "strata/platform/sim/host_function_scope.h"
#include "strata/platform/sim/sim_device.h"
#include "strata/platform/sim/sim_device_run.h"
#include "strata/platform/sim/sim_platform.h"

namespace strata {
namespace {

constexpr unsigned kKnownEventFlags =
    1u | kEventDisableTiming | kEventInterprocess;  // 1: blocking wait

// The uids of the calling thread's own streams, by device instance: a thread id
// would not do, as ids of threads are used again.
std::unordered_map<std::uint64_t, std::uint64_t>& PerThreadUids() {
  thread_local std::unordered_map<std::uint64_t, std::uint64_t> uids;
  return uids;
}

CallRecord CallOn(DeviceCall device_call, const Stream& stream) {
  CallRecord call;
  call.call = device_call;
  call.stream_uid = stream.uid;
  return call;
}

CallRecord CallOn(DeviceCall device_call, Event event) {
  CallRecord call;
  call.call = device_call;
  call.ptr = reinterpret_cast<std::uintptr_t>(event.value);
  return call;
}

bool ValidEventFlags(unsigned flags) {
  if ((flags & ~kKnownEventFlags) != 0) return false;
  return (flags & kEventInterprocess) == 0 ||
         (flags & kEventDisableTiming) != 0;
}

}  // namespace

Status SimDevice::StreamCreate(Stream* stream, unsigned flags) {
  CallRecord call;
  call.call = DeviceCall::kStreamCreate;
  call.value = flags;
  return Run(call, [&](CallRecord* seen) {
    if (stream == nullptr || (flags & ~unsigned{kStreamNonBlocking}) != 0) {
      return Status::kInvalidValue;
    }
    std::lock_guard lock(mutex_);
    *stream = streams_.Create();
    seen->ptr = reinterpret_cast<std::uintptr_t>(stream->handle);
    seen->stream_uid = stream->uid;
    return Status::kSuccess;
  });
}

Status SimDevice::StreamDestroy(Stream stream) {
  return Run(CallOn(DeviceCall::kStreamDestroy, stream), [&](CallRecord*) {
    std::lock_guard lock(mutex_);
    return streams_.Destroy(stream) ? Status::kSuccess
                                    : Status::kInvalidResourceHandle;
  });
}

Stream SimDevice::LegacyStream() {
  Stream stream;
  stream.handle = kLegacyStreamHandle;
  stream.device = ordinal_;
  stream.uid = kLegacyStreamUid;
  return stream;
}

Stream SimDevice::PerThreadStream() {
  std::uint64_t& uid = PerThreadUids()[instance_];
  if (uid == 0) {
    uid = NewStreamUid();
    std::lock_guard lock(mutex_);
    streams_.AddPerThread(uid);
  }
  Stream stream;
  stream.handle = kPerThreadStreamHandle;
  stream.device = ordinal_;
  stream.uid = uid;
  return stream;
}

Status SimDevice::WrapStream(void* handle, Stream* stream) {
  CallRecord call;
  call.call = DeviceCall::kWrapStream;
  call.ptr = reinterpret_cast<std::uintptr_t>(handle);
  return Run(call, [&](CallRecord* seen) {
    if (stream == nullptr) return Status::kInvalidValue;
    if (handle == nullptr || handle == kLegacyStreamHandle) {
      *stream = LegacyStream();
    } else if (handle == kPerThreadStreamHandle) {
      *stream = PerThreadStream();
    } else {
      std::lock_guard lock(mutex_);
      if (!streams_.Find(handle, stream)) return Status::kInvalidResourceHandle;
    }
    seen->stream_uid = stream->uid;
    return Status::kSuccess;
  });
}

Status SimDevice::StreamSynchronize(Stream stream) {
  return Run(CallOn(DeviceCall::kStreamSynchronize, stream),
             [&](CallRecord*) { return CheckStream(stream); });
}

Status SimDevice::StreamQuery(Stream stream) {
  return Run(CallOn(DeviceCall::kStreamQuery, stream),
             [&](CallRecord*) { return CheckStream(stream); });
}

Status SimDevice::StreamWaitEvent(Stream stream, Event event, unsigned flags) {
  CallRecord call = CallOn(DeviceCall::kStreamWaitEvent, stream);
  call.ptr = reinterpret_cast<std::uintptr_t>(event.value);
  call.value = flags;
  return Run(call, [&](CallRecord*) {
    const Status status = CheckStream(stream);
    if (status != Status::kSuccess) return status;
    // kEventExternal has a meaning only in a capture (cuda_semantics.md E9).
    if (flags != 0) return Status::kInvalidValue;
    return CheckEvent(event);
  });
}

Status SimDevice::LaunchHostFunc(Stream stream, HostFunction function,
                                 void* argument) {
  return Run(CallOn(DeviceCall::kLaunchHostFunc, stream), [&](CallRecord*) {
    if (function == nullptr) return Status::kInvalidValue;
    const Status status = CheckStream(stream);
    if (status != Status::kSuccess) return status;
    HostFunctionScope scope;
    function(argument);
    return Status::kSuccess;
  });
}

Status SimDevice::EventCreate(Event* event, unsigned flags) {
  CallRecord call;
  call.call = DeviceCall::kEventCreate;
  call.value = flags;
  return Run(call, [&](CallRecord* seen) {
    if (event == nullptr || !ValidEventFlags(flags)) {
      return Status::kInvalidValue;
    }
    std::lock_guard lock(mutex_);
    *event = events_.Create();
    seen->ptr = reinterpret_cast<std::uintptr_t>(event->value);
    return Status::kSuccess;
  });
}

Status SimDevice::EventDestroy(Event event) {
  return Run(CallOn(DeviceCall::kEventDestroy, event), [&](CallRecord*) {
    SimDevice* owner = platform_->OwnerOf(event);
    if (owner == nullptr) return Status::kInvalidResourceHandle;
    std::lock_guard lock(owner->mutex_);
    return owner->events_.Destroy(event) ? Status::kSuccess
                                         : Status::kInvalidResourceHandle;
  });
}

Status SimDevice::EventRecord(Event event, Stream stream, unsigned flags) {
  CallRecord call = CallOn(DeviceCall::kEventRecord, stream);
  call.ptr = reinterpret_cast<std::uintptr_t>(event.value);
  call.value = flags;
  return Run(call, [&](CallRecord*) {
    const Status status = CheckStream(stream);
    if (status != Status::kSuccess) return status;
    if (flags != 0) return Status::kInvalidValue;
    return HasEvent(event) ? Status::kSuccess : Status::kInvalidResourceHandle;
  });
}

Status SimDevice::EventQuery(Event event) {
  return Run(CallOn(DeviceCall::kEventQuery, event),
             [&](CallRecord*) { return CheckEvent(event); });
}

Status SimDevice::EventSynchronize(Event event) {
  return Run(CallOn(DeviceCall::kEventSynchronize, event),
             [&](CallRecord*) { return CheckEvent(event); });
}

Status SimDevice::CheckStream(const Stream& stream) const {
  std::lock_guard lock(mutex_);
  return streams_.Accepts(stream) ? Status::kSuccess
                                  : Status::kInvalidResourceHandle;
}

Status SimDevice::CheckEvent(Event event) const {
  const SimDevice* owner = platform_->OwnerOf(event);
  return owner != nullptr && owner->HasEvent(event)
             ? Status::kSuccess
             : Status::kInvalidResourceHandle;
}

bool SimDevice::HasEvent(Event event) const {
  std::lock_guard lock(mutex_);
  return events_.Has(event);
}

}  // namespace strata
