#include "strata/platform/sim/streams/timed_progress.h"

#include <algorithm>
#include <cstdint>

namespace strata::sim {
namespace {

// The clock saturates at its maximum.
std::uint64_t Later(std::uint64_t now_ns, std::uint64_t ns) {
  return ns > UINT64_MAX - now_ns ? UINT64_MAX : now_ns + ns;
}

}  // namespace

void TimedProgress::AfterSubmit(SimLock* /*lock*/) { StartReady(); }

void TimedProgress::AfterCall(std::uint64_t ns, SimLock* lock) {
  const std::uint64_t until = Later(NowNs(), ns);
  StartReady();
  while (!running_.empty() && running_.begin()->end_ns <= until) {
    FinishFirst(lock);
  }
  MoveClockTo(until);
}

bool TimedProgress::MoveTowards(const StreamPoint& /*point*/, SimLock* lock) {
  StartReady();
  if (running_.empty()) return false;
  FinishFirst(lock);
  return true;
}

void TimedProgress::RunNow(SimStream* stream, SimLock* lock) {
  const StreamPoint point{stream->device, stream->uid, stream->completed + 1};
  while (!streams().IsDone(point) && MoveTowards(point, lock)) {
  }
}

void TimedProgress::StartReady() {
  while (SimStream* stream = FirstToStart()) {
    Operation& operation = stream->queue.front();
    operation.started = true;
    ++slots_taken_[stream->device];
    running_.insert(
        {Later(NowNs(), operation.cost_ns), operation.number, stream});
  }
}

SimStream* TimedProgress::FirstToStart() const {
  SimStream* first = nullptr;
  for (const auto& [key, stream] : streams().busy()) {
    if (!streams().IsReady(*stream) || stream->queue.front().started) continue;
    const auto taken = slots_taken_.find(stream->device);
    if (taken != slots_taken_.end() && taken->second == kConcurrentWork) {
      continue;
    }
    if (first == nullptr ||
        stream->queue.front().number < first->queue.front().number) {
      first = stream;
    }
  }
  return first;
}

void TimedProgress::FinishFirst(SimLock* lock) {
  const Running first = *running_.begin();
  running_.erase(running_.begin());
  MoveClockTo(first.end_ns);
  const std::int32_t device = first.stream->device;
  runner().RunFirst(first.stream, lock);
  --slots_taken_[device];
  StartReady();
}

void TimedProgress::MoveClockTo(std::uint64_t ns) {
  now_ns_.store(std::max(NowNs(), ns), std::memory_order_relaxed);
}

}  // namespace strata::sim
