#include "strata/tests/testing/hazards/hazard_player.h"

#include <iterator>

#include "strata/platform/stream.h"

namespace strata {

HazardPlayer::Worker::Worker() : thread_([this] { Run(); }) {}

HazardPlayer::Worker::~Worker() {
  {
    std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void HazardPlayer::Worker::Do(const std::function<void()>& what) {
  std::unique_lock lock(mutex_);
  what_ = &what;
  changed_.notify_all();
  changed_.wait(lock, [this] { return what_ == nullptr; });
}

void HazardPlayer::Worker::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return what_ != nullptr || ends_; });
    if (ends_) return;
    (*what_)();
    what_ = nullptr;
    changed_.notify_all();
  }
}

HazardPlayer::HazardPlayer(Platform& platform)
    : device_(platform.device(0)), work_(*platform.work(0)) {
  device_.DefaultMemPool(&pool_);
}

HazardPlayer::~HazardPlayer() = default;

void HazardPlayer::Play(const std::vector<CallRecord>& program) {
  for (const CallRecord& call : program) {
    if (call.status != Status::kSuccess) continue;
    std::unique_ptr<Worker>& worker = workers_[call.thread];
    if (worker == nullptr) worker = std::make_unique<Worker>();
    worker->Do([this, &call] { Make(call); });
  }
}

Stream HazardPlayer::StreamOf(std::uint64_t uid) const {
  if (uid == kLegacyStreamUid) return device_.LegacyStream();
  const auto found = streams_.find(uid);
  return found == streams_.end() ? Stream() : found->second;
}

DevicePtr HazardPlayer::Real(std::uint64_t ptr) const {
  const auto behind = ranges_.upper_bound(ptr);
  if (behind == ranges_.begin()) return 0;
  const auto& [begin, range] = *std::prev(behind);
  return ptr < begin + range.bytes ? range.real + (ptr - begin) : 0;
}

void HazardPlayer::Make(const CallRecord& call) {
  const Stream stream = StreamOf(call.stream_uid);
  switch (call.call) {
    case DeviceCall::kStreamCreate:
      device_.StreamCreate(&streams_[call.stream_uid],
                           static_cast<unsigned>(call.value));
      return;
    case DeviceCall::kStreamDestroy:
      device_.StreamDestroy(stream);
      return;
    case DeviceCall::kStreamSynchronize:
      device_.StreamSynchronize(stream);
      return;
    case DeviceCall::kSynchronize:
      device_.Synchronize();
      return;
    case DeviceCall::kEventCreate:
      device_.EventCreate(&events_[call.ptr], kEventDisableTiming);
      return;
    case DeviceCall::kEventRecord:
      device_.EventRecord(events_[call.ptr], stream, 0);
      return;
    case DeviceCall::kStreamWaitEvent:
      device_.StreamWaitEvent(stream, events_[call.ptr], 0);
      return;
    case DeviceCall::kEventQuery:
    case DeviceCall::kEventSynchronize:
      device_.EventSynchronize(events_[call.ptr]);
      return;
    case DeviceCall::kUse:
    case DeviceCall::kMemsetAsync: {
      const bool write =
          call.call == DeviceCall::kMemsetAsync || call.value != 0;
      const WorkRange range{Real(call.ptr),
                            static_cast<std::size_t>(call.bytes), write};
      work_.Enqueue(stream, &range, 1, 0, 0);
      return;
    }
    case DeviceCall::kBlockAlloc:
    case DeviceCall::kBlockFree:
    case DeviceCall::kBlockMark: {
      CallRecord event = call;
      event.ptr = Real(call.ptr);
      event.stream_uid = stream.uid;
      device_.Note(event);
      return;
    }
    case DeviceCall::kHostRelease:
    case DeviceCall::kHostAcquire:
      device_.Note(call);
      return;
    default:
      MakeMemory(call);
  }
}

void HazardPlayer::MakeMemory(const CallRecord& call) {
  const Stream stream = StreamOf(call.stream_uid);
  const auto bytes = static_cast<std::size_t>(call.bytes);
  DevicePtr real = 0;
  switch (call.call) {
    case DeviceCall::kMemAlloc:
      device_.MemAlloc(&real, bytes);
      break;
    case DeviceCall::kMallocHost: {
      void* host = nullptr;
      device_.MallocHost(&host, bytes, 0);
      real = reinterpret_cast<DevicePtr>(host);
      break;
    }
    case DeviceCall::kMallocFromPoolAsync:
      device_.MallocFromPoolAsync(&real, bytes, pool_, stream);
      break;
    case DeviceCall::kCreateMemory:
      device_.CreateMemory(&memory_[call.ptr], bytes, MemProperties());
      return;
    case DeviceCall::kMapRange: {
      const AccessDescriptor all;
      real = Real(call.ptr);
      if (real == 0) device_.ReserveRange(&real, bytes, 0, 0);
      device_.MapRange(real, bytes, 0, memory_[call.value]);
      device_.SetAccess(real, bytes, &all, 1);
      break;
    }
    case DeviceCall::kUnmapRange:
      device_.UnmapRange(Real(call.ptr), bytes);
      return;
    case DeviceCall::kMemFree:
      device_.MemFree(Real(call.ptr));
      return;
    case DeviceCall::kFreeAsync:
      device_.FreeAsync(Real(call.ptr), stream);
      return;
    default:
      MakeGraph(call);
      return;
  }
  ranges_[call.ptr] = {call.bytes, real};
}

void HazardPlayer::MakeGraph(const CallRecord& call) {
  const Stream stream = StreamOf(call.stream_uid);
  switch (call.call) {
    case DeviceCall::kStreamBeginCapture:
      device_.StreamBeginCapture(stream, CaptureMode::kRelaxed);
      return;
    case DeviceCall::kStreamEndCapture:
      device_.StreamEndCapture(stream, &graphs_[call.ptr]);
      return;
    case DeviceCall::kGraphInstantiate:
      device_.GraphInstantiate(&execs_[call.ptr], graphs_[call.value], 0);
      return;
    case DeviceCall::kGraphLaunch:
      device_.GraphLaunch(execs_[call.ptr], stream);
      return;
    default:
      return;
  }
}

}  // namespace strata
