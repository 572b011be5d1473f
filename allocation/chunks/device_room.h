#ifndef STRATA_ALLOCATION_CHUNKS_DEVICE_ROOM_H_
#define STRATA_ALLOCATION_CHUNKS_DEVICE_ROOM_H_

#include <cstddef>

#include "strata/platform/device.h"
#include "strata/platform/locks/spin_lock.h"

namespace strata {

// An estimate of the free bytes of a device, with few device calls.
//
// Model: queries the device at the first call, after Forget(), and when the
//   reserved bytes have changed by kStepBytes since the last query. In between,
//   adds that change to the last answer. Memory that other processes allocate
//   shows at the next query.
// Units: bytes.
// Threads: any thread. No lock is held during a device call.
// Cost: one MemGetInfo per kStepBytes of growth, 7 us on an H200
//   (docs/gpu/2026-11-26.md).
class DeviceRoom {
 public:
  static constexpr std::size_t kStepBytes = std::size_t{1} << 30;

  // Returns the estimate. `reserved_bytes` is the number of bytes now held from
  // the device. SIZE_MAX if the device call fails.
  std::size_t Estimate(Device& device, std::size_t reserved_bytes) noexcept;
  // Forces a query at the next Estimate(). Call it after the device refused
  // memory.
  void Forget() noexcept;

 private:
  SpinLock lock_;
  // The members below are guarded by lock_.
  bool is_known_ = false;
  std::size_t free_bytes_ = 0;      // at the last answer
  std::size_t reserved_bytes_ = 0;  // at the last answer
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_CHUNKS_DEVICE_ROOM_H_
