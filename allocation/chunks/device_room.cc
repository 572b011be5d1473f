#include "strata/allocation/chunks/device_room.h"

#include <algorithm>
#include <cstdint>
#include <mutex>

namespace strata {

std::size_t DeviceRoom::Estimate(Device& device,
                                 std::size_t reserved_bytes) noexcept {
  {
    const std::lock_guard<SpinLock> guard(lock_);
    const std::size_t taken =
        reserved_bytes - std::min(reserved_bytes, reserved_bytes_);
    const std::size_t given =
        reserved_bytes_ - std::min(reserved_bytes, reserved_bytes_);
    if (is_known_ && taken < kStepBytes && given < kStepBytes) {
      return free_bytes_ + given - std::min(free_bytes_ + given, taken);
    }
  }
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  if (device.MemGetInfo(&free_bytes, &total_bytes) != Status::kSuccess) {
    return SIZE_MAX;
  }
  const std::lock_guard<SpinLock> guard(lock_);
  is_known_ = true;
  free_bytes_ = free_bytes;
  reserved_bytes_ = reserved_bytes;
  return free_bytes;
}

void DeviceRoom::Forget() noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  is_known_ = false;
}

}  // namespace strata
