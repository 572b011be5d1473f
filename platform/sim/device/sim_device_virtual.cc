// Virtual memory of the simulated device.

#include "strata/platform/sim/device/sim_device.h"
#include "strata/platform/sim/device/sim_device_run.h"
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

Status SimDevice::Granularity(const MemProperties& properties, bool recommended,
                              std::size_t* bytes) {
  return Run(RecordOf(DeviceCall::kGranularity, 0, 0, recommended ? 1 : 0),
             [&](CallRecord*) {
               if (bytes == nullptr) return Status::kInvalidValue;
               std::lock_guard lock(mutex_);
               const Status status =
                   platform_->physical_memory().Check(properties);
               if (status == Status::kSuccess) *bytes = kFrameBytes;
               return status;
             });
}

Status SimDevice::ReserveRange(DevicePtr* ptr, std::size_t bytes,
                               std::size_t alignment, DevicePtr hint) {
  return Run(RecordOf(DeviceCall::kReserveRange, 0, bytes, alignment),
             [&](CallRecord* seen) {
               if (ptr == nullptr) return Status::kInvalidValue;
               std::lock_guard lock(mutex_);
               const Status status = platform_->virtual_memory().Reserve(
                   ordinal_, bytes, alignment, hint, ptr);
               if (status == Status::kSuccess) seen->ptr = *ptr;
               return status;
             });
}

Status SimDevice::FreeRange(DevicePtr ptr, std::size_t bytes) {
  return Run(RecordOf(DeviceCall::kFreeRange, ptr, bytes, 0), [&](CallRecord*) {
    std::lock_guard lock(mutex_);
    return platform_->virtual_memory().FreeReservation(ptr, bytes);
  });
}

Status SimDevice::CreateMemory(MemHandle* handle, std::size_t bytes,
                               const MemProperties& properties) {
  const auto location = static_cast<std::uint64_t>(properties.location.id);
  return Run(RecordOf(DeviceCall::kCreateMemory, 0, bytes, location),
             [&](CallRecord* seen) {
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
             });
}

bool SimDevice::MakeRoomIn(const Location& location, std::size_t bytes) {
  if (location.kind != Location::Kind::kDevice) return false;
  PoolTable& pools = platform_->sim_device(location.id).pools_;
  return pools.MakeRoom(bytes, scheduler_);
}

Status SimDevice::ReleaseMemory(MemHandle handle) {
  return Run(RecordOf(DeviceCall::kReleaseMemory, handle.value, 0, 0),
             [&](CallRecord*) {
               std::lock_guard lock(mutex_);
               return platform_->physical_memory().Release(handle);
             });
}

Status SimDevice::MapRange(DevicePtr ptr, std::size_t bytes, std::size_t offset,
                           MemHandle handle) {
  return Run(RecordOf(DeviceCall::kMapRange, ptr, bytes, handle.value),
             [&](CallRecord*) {
               std::lock_guard lock(mutex_);
               return platform_->virtual_memory().Map(ptr, bytes, offset,
                                                      handle);
             });
}

Status SimDevice::UnmapRange(DevicePtr ptr, std::size_t bytes) {
  std::size_t extra = 0;
  return Run(
      RecordOf(DeviceCall::kUnmapRange, ptr, bytes, 0),
      [&](CallRecord*) {
        std::uint64_t mappings = 0;
        std::lock_guard lock(mutex_);
        const Status status =
            platform_->virtual_memory().Unmap(ptr, bytes, &mappings);
        extra = ExtraMappings(mappings);
        return status;
      },
      &extra);
}

Status SimDevice::SetAccess(DevicePtr ptr, std::size_t bytes,
                            const AccessDescriptor* access, std::size_t count) {
  std::size_t extra = 0;
  return Run(
      RecordOf(DeviceCall::kSetAccess, ptr, bytes, count),
      [&](CallRecord*) {
        std::uint64_t mappings = 0;
        std::lock_guard lock(mutex_);
        const Status status = platform_->virtual_memory().SetAccess(
            ptr, bytes, access, count, &mappings);
        extra = ExtraMappings(mappings);
        return status;
      },
      &extra);
}

Status SimDevice::GetAccess(DevicePtr ptr, Location location, Access* access) {
  const auto id = static_cast<std::uint64_t>(location.id);
  return Run(RecordOf(DeviceCall::kGetAccess, ptr, 0, id), [&](CallRecord*) {
    if (access == nullptr) return Status::kInvalidValue;
    std::lock_guard lock(mutex_);
    return platform_->virtual_memory().GetAccess(ptr, location, access);
  });
}

Status SimDevice::ExportMemory(MemHandle handle, ShareType type,
                               Shareable* shareable) {
  return Run(RecordOf(DeviceCall::kExportMemory, handle.value, 0,
                      static_cast<std::uint64_t>(type)),
             [&](CallRecord*) {
               if (shareable == nullptr) return Status::kInvalidValue;
               std::lock_guard lock(mutex_);
               return platform_->physical_memory().Export(handle, type,
                                                          shareable);
             });
}

Status SimDevice::ImportMemory(MemHandle* handle, ShareType type,
                               const Shareable& shareable) {
  return Run(RecordOf(DeviceCall::kImportMemory, 0, 0,
                      static_cast<std::uint64_t>(type)),
             [&](CallRecord* seen) {
               if (handle == nullptr) return Status::kInvalidValue;
               std::lock_guard lock(mutex_);
               const Status status =
                   platform_->physical_memory().Import(type, shareable, handle);
               if (status == Status::kSuccess) seen->ptr = handle->value;
               return status;
             });
}

Status SimDevice::RetainMemory(DevicePtr ptr, MemHandle* handle) {
  return Run(
      RecordOf(DeviceCall::kRetainMemory, ptr, 0, 0), [&](CallRecord* seen) {
        if (handle == nullptr) return Status::kInvalidValue;
        std::lock_guard lock(mutex_);
        const Status status = platform_->virtual_memory().Retain(ptr, handle);
        if (status == Status::kSuccess) seen->value = handle->value;
        return status;
      });
}

}  // namespace strata::sim
