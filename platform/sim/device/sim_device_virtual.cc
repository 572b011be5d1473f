// Virtual memory of the simulated device.

#include "strata/platform/sim/device/sim_device.h"
#include "strata/platform/sim/device/sim_platform.h"
#include "strata/platform/sim/memory/physical_memory.h"
#include "strata/platform/sim/memory/virtual_memory.h"

namespace strata::sim {
namespace {

// The cost of calls on ranges grows with the mappings after the first.
std::size_t ExtraMappings(std::uint64_t mappings) {
  return static_cast<std::size_t>(mappings > 0 ? mappings - 1 : 0);
}

}  // namespace

Status SimDevice::DoGranularity(Call*, const MemProperties& properties,
                                bool /*recommended*/, std::size_t* bytes) {
  if (bytes == nullptr) return Status::kInvalidValue;
  std::lock_guard lock(mutex_);
  const Status status = platform_->physical_memory().Check(properties);
  if (status == Status::kSuccess) *bytes = kFrameBytes;
  return status;
}

Status SimDevice::DoReserveRange(Call* seen, DevicePtr* ptr, std::size_t bytes,
                                 std::size_t alignment, DevicePtr hint) {
  if (ptr == nullptr) return Status::kInvalidValue;
  std::lock_guard lock(mutex_);
  const Status status = platform_->virtual_memory().Reserve(
      ordinal_, bytes, alignment, hint, ptr);
  if (status == Status::kSuccess) seen->ptr = *ptr;
  return status;
}

Status SimDevice::DoFreeRange(Call*, DevicePtr ptr, std::size_t bytes) {
  std::lock_guard lock(mutex_);
  return platform_->virtual_memory().FreeReservation(ptr, bytes);
}

Status SimDevice::DoCreateMemory(Call* seen, MemHandle* handle,
                                 std::size_t bytes,
                                 const MemProperties& properties) {
  if (handle == nullptr) return Status::kInvalidValue;
  std::lock_guard lock(mutex_);
  PhysicalMemory& memory = platform_->physical_memory();
  Status status = memory.Create(bytes, properties, handle);
  // Idle memory of pools is released before the call fails: P12.
  if (status == Status::kMemoryAllocation &&
      MakeRoomIn(properties.location, bytes)) {
    status = memory.Create(bytes, properties, handle);
  }
  if (status == Status::kSuccess) seen->ptr = handle->value;
  return status;
}

bool SimDevice::MakeRoomIn(const Location& location, std::size_t bytes) {
  if (location.kind != Location::Kind::kDevice) return false;
  PoolTable& pools = platform_->sim_device(location.id).pools_;
  return pools.MakeRoom(bytes, scheduler_);
}

Status SimDevice::DoReleaseMemory(Call*, MemHandle handle) {
  std::lock_guard lock(mutex_);
  return platform_->physical_memory().Release(handle);
}

Status SimDevice::DoMapRange(Call*, DevicePtr ptr, std::size_t bytes,
                             std::size_t offset, MemHandle handle) {
  std::lock_guard lock(mutex_);
  return platform_->virtual_memory().Map(ptr, bytes, offset, handle);
}

Status SimDevice::DoUnmapRange(Call* seen, DevicePtr ptr, std::size_t bytes) {
  std::uint64_t mappings = 0;
  std::lock_guard lock(mutex_);
  const Status status =
      platform_->virtual_memory().Unmap(ptr, bytes, &mappings);
  seen->charged_bytes = ExtraMappings(mappings);
  return status;
}

Status SimDevice::DoSetAccess(Call* seen, DevicePtr ptr, std::size_t bytes,
                              const AccessDescriptor* access,
                              std::size_t count) {
  std::uint64_t mappings = 0;
  std::lock_guard lock(mutex_);
  const Status status = platform_->virtual_memory().SetAccess(
      ptr, bytes, access, count, &mappings);
  seen->charged_bytes = ExtraMappings(mappings);
  return status;
}

Status SimDevice::DoGetAccess(Call*, DevicePtr ptr, Location location,
                              Access* access) {
  if (access == nullptr) return Status::kInvalidValue;
  std::lock_guard lock(mutex_);
  return platform_->virtual_memory().GetAccess(ptr, location, access);
}

Status SimDevice::DoExportMemory(Call*, MemHandle handle, ShareType type,
                                 Shareable* shareable) {
  if (shareable == nullptr) return Status::kInvalidValue;
  std::lock_guard lock(mutex_);
  return platform_->physical_memory().Export(handle, type, shareable);
}

Status SimDevice::DoImportMemory(Call* seen, MemHandle* handle, ShareType type,
                                 const Shareable& shareable) {
  if (handle == nullptr) return Status::kInvalidValue;
  std::lock_guard lock(mutex_);
  const Status status =
      platform_->physical_memory().Import(type, shareable, handle);
  if (status == Status::kSuccess) seen->ptr = handle->value;
  return status;
}

Status SimDevice::DoRetainMemory(Call* seen, DevicePtr ptr, MemHandle* handle) {
  if (handle == nullptr) return Status::kInvalidValue;
  std::lock_guard lock(mutex_);
  const Status status = platform_->virtual_memory().Retain(ptr, handle);
  if (status == Status::kSuccess) seen->value = handle->value;
  return status;
}

}  // namespace strata::sim
