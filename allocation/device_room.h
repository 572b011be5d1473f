#ifndef STRATA_ALLOCATION_DEVICE_ROOM_H_
#define STRATA_ALLOCATION_DEVICE_ROOM_H_

#include <cstddef>

#include "strata/platform/device.h"
#include "strata/platform/spin_lock.h"

namespace strata {

// An estimate of the device's free bytes that seldom asks the device.
//
// Model: the device is asked at the first call, after Forget(), and once the
//   bytes reserved since the last answer changed by kStepBytes. In between, the
//   answer is corrected by that change. Memory that other processes take is
//   seen at the next answer.
// Units: bytes.
// Threads: any thread. No lock is held during a device call.
// Cost: one MemGetInfo per kStepBytes of growth, 7 us on an H200
//   (docs/gpu/2026-11-26.md).
class DeviceRoom {
 public:
  static constexpr std::size_t kStepBytes = std::size_t{1} << 30;

  // `reserved_bytes` are held from the device now. SIZE_MAX if the device does
  // not answer.
  std::size_t Estimate(Device& device, std::size_t reserved_bytes) noexcept;
  // The next Estimate asks. For a caller that the device refused memory.
  void Forget() noexcept;

 private:
  SpinLock lock_;
  // All below guarded by lock_.
  bool is_known_ = false;
  std::size_t free_bytes_ = 0;      // at the last answer
  std::size_t reserved_bytes_ = 0;  // at the last answer
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_DEVICE_ROOM_H_
