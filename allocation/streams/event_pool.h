#ifndef STRATA_ALLOCATION_STREAMS_EVENT_POOL_H_
#define STRATA_ALLOCATION_STREAMS_EVENT_POOL_H_

#include <cstddef>
#include <vector>

#include "strata/platform/device.h"
#include "strata/platform/locks/spin_lock.h"

namespace strata {

// A pool of events of one device. Recording needs no creation, which is slow
// and may be forbidden during a capture.
//
// Threads: any thread. No device call with the lock held.
// Cost: O(1), without a device call unless the pool is empty.
// Lifetime: all events must be returned first; `device` must outlive it.
// Source: cuda_semantics.md E7, C19.
class EventPool {
 public:
  static constexpr std::size_t kBatch = 8;  // created when the pool is empty
  // most events kept; others are destroyed
  static constexpr std::size_t kKept = 256;

  explicit EventPool(Device& device);
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;
  ~EventPool();

  // Takes an event out. Returns kSuccess, or the status of the call that
  // creates one.
  Status Take(Event* event) noexcept;
  // Returns `event` to the pool. It may be pending.
  void Give(Event event) noexcept;
  // Number of events in the pool.
  std::size_t kept() const noexcept;

 private:
  void Destroy(Event event) noexcept;

  Device& device_;
  mutable SpinLock lock_;
  std::vector<Event> free_;  // at most kKept; guarded by lock_
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_STREAMS_EVENT_POOL_H_
