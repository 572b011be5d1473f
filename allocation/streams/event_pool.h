#ifndef STRATA_ALLOCATION_STREAMS_EVENT_POOL_H_
#define STRATA_ALLOCATION_STREAMS_EVENT_POOL_H_

#include <cstddef>
#include <vector>

#include "strata/platform/device.h"
#include "strata/platform/spin_lock.h"

namespace strata {

// Events of one device, made ahead and used again: recording needs no creation,
// which is slow, and not for certain allowed during a capture.
//
// Threads: any thread. No device call with the lock held.
// Cost: O(1), without a device call unless the pool is empty.
// Lifetime: events outside must be given back first; `device` outlives it.
// Source: cuda_semantics.md E7, C19.
class EventPool {
 public:
  static constexpr std::size_t kBatch = 8;   // made when it is empty
  static constexpr std::size_t kKept = 256;  // more than that are destroyed

  explicit EventPool(Device& device);
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;
  ~EventPool();

  // kSuccess, or what the device answered when it was asked for one more.
  Status Take(Event* event) noexcept;
  // `event` may be pending.
  void Give(Event event) noexcept;
  // Events that wait for their next use.
  std::size_t kept() const noexcept;

 private:
  void Destroy(Event event) noexcept;

  Device& device_;
  mutable SpinLock lock_;
  std::vector<Event> free_;  // never grows beyond kKept; guarded by lock_
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_STREAMS_EVENT_POOL_H_
