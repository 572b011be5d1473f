// Device memory of the simulated device.

#include <optional>

#include "strata/platform/sim/device/sim_device.h"
#include "strata/platform/sim/device/sim_platform.h"
#include "strata/platform/sim/memory/host_ranges.h"
#include "strata/platform/sim/pools/pool_space.h"

namespace strata::sim {
Status SimDevice::DoMemAlloc(Call* seen, DevicePtr* ptr, std::size_t bytes) {
  if (ptr == nullptr) return Status::kInvalidValue;
  if (bytes == 0) {
    *ptr = 0;
    return Status::kSuccess;
  }
  std::lock_guard lock(mutex_);
  platform_->physical_memory().FreeClosed();
  std::uint64_t free_before = memory_.free_bytes();
  Status status = memory_.Allocate(bytes, ptr);
  // Idle memory of pools is released before the call fails: P12.
  if (status == Status::kMemoryAllocation &&
      pools_.MakeRoom(bytes, scheduler_)) {
    free_before = memory_.free_bytes();
    status = memory_.Allocate(bytes, ptr);
  }
  if (status != Status::kSuccess) return status;
  seen->charged_bytes = free_before - memory_.free_bytes();
  seen->ptr = *ptr;
  return status;
}

Status SimDevice::DoMemFree(Call*, DevicePtr ptr) {
  if (ptr == 0) return Status::kSuccess;
  SimLock lock(mutex_);
  if (DeviceOfPoolAddress(ptr) == ordinal_) {
    // At once and without a wait, as for all pool memory: H3.
    return pools_.Free(ptr, std::nullopt, scheduler_) ? Status::kSuccess
                                                      : Status::kInvalidValue;
  }
  if (DeviceOfGraphAddress(ptr) == ordinal_) return FreeGraphMemoryNow(ptr);
  const Status status = AwaitBeforeFree(&lock);
  if (status != Status::kSuccess) return status;
  if (DeviceOfAddress(ptr) != ordinal_) {
    return platform_->host_ranges().Unmap(HostRangeKind::kManaged,
                                          reinterpret_cast<void*>(ptr));
  }
  return memory_.Free(ptr);
}

Status SimDevice::DoPointerAttributes(Call*, DevicePtr ptr, PointerInfo* info) {
  if (info == nullptr) return Status::kInvalidValue;
  std::lock_guard lock(mutex_);
  *info = platform_->address_space().Describe(ptr);
  return Status::kSuccess;
}

Status SimDevice::AddressRange(DevicePtr ptr, DevicePtr* base,
                               std::uint64_t* bytes) {
  std::lock_guard lock(mutex_);
  const auto range = platform_->address_space().RangeOf(ptr);
  if (!range) return Status::kInvalidValue;
  *base = range->begin;
  *bytes = range->bytes;
  return Status::kSuccess;
}

std::uint64_t SimDevice::peak_used_bytes() const {
  std::lock_guard lock(mutex_);
  return memory_.peak_used_bytes();
}

void SimDevice::ResetPeakUsedBytes() {
  std::lock_guard lock(mutex_);
  memory_.ResetPeakUsedBytes();
}

}  // namespace strata::sim
