// Host memory that the simulated device can access: pinned, registered,
// managed.

#include "strata/platform/sim/device/sim_device.h"
#include "strata/platform/sim/device/sim_platform.h"
#include "strata/platform/sim/memory/host_ranges.h"

namespace strata::sim {
namespace {

// CUDA's cudaHostAlloc: portable, mapped, write-combined.
constexpr unsigned kKnownHostFlags = 1 | 2 | 4;
// CUDA's cudaHostRegister: portable, mapped, io memory, read-only.
constexpr unsigned kKnownRegisterFlags = 1 | 2 | 4 | 8;

}  // namespace

Status SimDevice::DoMallocHost(Call* seen, void** ptr, std::size_t bytes,
                               unsigned flags) {
  if (ptr == nullptr || (flags & ~kKnownHostFlags) != 0) {
    return Status::kInvalidValue;
  }
  if (bytes == 0) {
    *ptr = nullptr;
    return Status::kSuccess;
  }
  const Status status = platform_->host_ranges().Map(HostRangeKind::kPinned,
                                                     ordinal_, bytes, ptr);
  if (status == Status::kSuccess) {
    seen->ptr = NumberOf(*ptr);
  }
  return status;
}

Status SimDevice::DoFreeHost(Call*, void* ptr) {
  if (ptr == nullptr) return Status::kSuccess;
  // Held while the range is unmapped, because running work may access it.
  SimLock lock(mutex_);
  const Status status = AwaitBeforeFree(&lock);
  if (status != Status::kSuccess) return status;
  return platform_->host_ranges().Unmap(HostRangeKind::kPinned, ptr);
}

Status SimDevice::DoHostRegister(Call*, void* ptr, std::size_t bytes,
                                 unsigned flags) {
  if (ptr == nullptr || bytes == 0 || (flags & ~kKnownRegisterFlags) != 0) {
    return Status::kInvalidValue;
  }
  return platform_->host_ranges().Register(ordinal_, ptr, bytes);
}

Status SimDevice::DoHostUnregister(Call*, void* ptr) {
  SimLock lock(mutex_);
  const Status status = AwaitBeforeFree(&lock);
  if (status != Status::kSuccess) return status;
  return platform_->host_ranges().Unregister(ptr);
}

Status SimDevice::DoMallocManaged(Call* seen, DevicePtr* ptr, std::size_t bytes,
                                  unsigned flags) {
  const bool known = flags == kManagedGlobal || flags == kManagedHost;
  if (ptr == nullptr || bytes == 0 || !known) return Status::kInvalidValue;
  void* mapped = nullptr;
  const Status status = platform_->host_ranges().Map(HostRangeKind::kManaged,
                                                     ordinal_, bytes, &mapped);
  if (status != Status::kSuccess) return status;
  *ptr = reinterpret_cast<DevicePtr>(mapped);
  seen->ptr = *ptr;
  return status;
}

std::uint64_t SimDevice::peak_managed_bytes() const {
  return platform_->host_ranges().peak_managed_bytes(ordinal_);
}

}  // namespace strata::sim
