#include "strata/allocation/streams/event_pool.h"

#include <mutex>

#include "strata/base/log.h"

namespace strata {

EventPool::EventPool(Device& device) : device_(device) { free_.reserve(kKept); }

EventPool::~EventPool() {
  for (const Event& event : free_) Destroy(event);
}

Status EventPool::Take(Event* event) noexcept {
  {
    const std::lock_guard<SpinLock> guard(lock_);
    if (!free_.empty()) {
      *event = free_.back();
      free_.pop_back();
      return Status::kSuccess;
    }
  }
  const Status status = device_.EventCreate(event, kEventDisableTiming);
  if (status != Status::kSuccess) return status;
  for (std::size_t i = 1; i < kBatch; ++i) {
    Event spare;
    // One event is enough; the others are spare.
    if (device_.EventCreate(&spare, kEventDisableTiming) != Status::kSuccess) {
      break;
    }
    Give(spare);
  }
  return Status::kSuccess;
}

std::size_t EventPool::kept() const noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  return free_.size();
}

void EventPool::Give(Event event) noexcept {
  {
    const std::lock_guard<SpinLock> guard(lock_);
    if (free_.size() < kKept) {
      free_.push_back(event);
      return;
    }
  }
  Destroy(event);
}

void EventPool::Destroy(Event event) noexcept {
  const Status status = device_.EventDestroy(event);
  STRATA_LOG_IF(Error, status != Status::kSuccess)
      << "cannot destroy an event: " << status;
}

}  // namespace strata
