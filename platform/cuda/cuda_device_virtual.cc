// Virtual memory of a GPU.

#include "strata/platform/cuda/cuda_device_run.h"
#include "strata/platform/cuda/cuda_types.h"

namespace strata::cuda {
Status CudaDevice::Granularity(const MemProperties& properties,
                               bool recommended, std::size_t* bytes) {
  if (!caps_.virtual_memory) return Status::kNotSupported;
  return Run(RecordOf(DeviceCall::kGranularity, 0, 0, recommended ? 1 : 0),
             [&](CallRecord*) {
               if (bytes == nullptr) return Status::kInvalidValue;
               const CUmemAllocationProp prop = ToCuda(properties);
               std::size_t granularity = 0;
               const CUresult result = driver_.MemGetAllocationGranularity(
                   &granularity, &prop,
                   recommended ? CU_MEM_ALLOC_GRANULARITY_RECOMMENDED
                               : CU_MEM_ALLOC_GRANULARITY_MINIMUM);
               if (result != CUDA_SUCCESS) return ToStatus(result);
               *bytes = granularity;
               return Status::kSuccess;
             });
}

Status CudaDevice::ReserveRange(DevicePtr* ptr, std::size_t bytes,
                                std::size_t alignment, DevicePtr hint) {
  if (!caps_.virtual_memory) return Status::kNotSupported;
  return Run(RecordOf(DeviceCall::kReserveRange, 0, bytes, alignment),
             [&](CallRecord* seen) {
               if (ptr == nullptr) return Status::kInvalidValue;
               CUdeviceptr range = 0;
               const CUresult result =
                   driver_.MemAddressReserve(&range, bytes, alignment, hint, 0);
               if (result != CUDA_SUCCESS) return ToStatus(result);
               *ptr = range;
               seen->ptr = range;
               return Status::kSuccess;
             });
}

Status CudaDevice::FreeRange(DevicePtr ptr, std::size_t bytes) {
  if (!caps_.virtual_memory) return Status::kNotSupported;
  return Run(RecordOf(DeviceCall::kFreeRange, ptr, bytes), [&](CallRecord*) {
    return ToStatus(driver_.MemAddressFree(ptr, bytes));
  });
}

Status CudaDevice::CreateMemory(MemHandle* handle, std::size_t bytes,
                                const MemProperties& properties) {
  if (!caps_.virtual_memory) return Status::kNotSupported;
  return Run(RecordOf(DeviceCall::kCreateMemory, 0, bytes,
                      static_cast<std::uint64_t>(properties.location.id)),
             [&](CallRecord* seen) {
               if (handle == nullptr) return Status::kInvalidValue;
               const CUmemAllocationProp prop = ToCuda(properties);
               CUmemGenericAllocationHandle made = 0;
               const CUresult result =
                   driver_.MemCreate(&made, bytes, &prop, 0);
               if (result != CUDA_SUCCESS) return ToStatus(result);
               handle->value = made;
               seen->ptr = made;
               return Status::kSuccess;
             });
}

Status CudaDevice::ReleaseMemory(MemHandle handle) {
  if (!caps_.virtual_memory) return Status::kNotSupported;
  return Run(
      RecordOf(DeviceCall::kReleaseMemory, handle.value),
      [&](CallRecord*) { return ToStatus(driver_.MemRelease(handle.value)); });
}

Status CudaDevice::MapRange(DevicePtr ptr, std::size_t bytes,
                            std::size_t offset, MemHandle handle) {
  if (!caps_.virtual_memory) return Status::kNotSupported;
  return Run(
      RecordOf(DeviceCall::kMapRange, ptr, bytes, handle.value),
      [&](CallRecord*) {
        return ToStatus(driver_.MemMap(ptr, bytes, offset, handle.value, 0));
      });
}

Status CudaDevice::UnmapRange(DevicePtr ptr, std::size_t bytes) {
  if (!caps_.virtual_memory) return Status::kNotSupported;
  return Run(RecordOf(DeviceCall::kUnmapRange, ptr, bytes), [&](CallRecord*) {
    return ToStatus(driver_.MemUnmap(ptr, bytes));
  });
}

Status CudaDevice::SetAccess(DevicePtr ptr, std::size_t bytes,
                             const AccessDescriptor* access,
                             std::size_t count) {
  if (!caps_.virtual_memory) return Status::kNotSupported;
  return Run(RecordOf(DeviceCall::kSetAccess, ptr, bytes, count),
             [&](CallRecord*) {
               if (access == nullptr && count != 0) {
                 return Status::kInvalidValue;
               }
               const auto descriptors = ToCuda(access, count);
               return ToStatus(
                   driver_.MemSetAccess(ptr, bytes, descriptors.data(), count));
             });
}

Status CudaDevice::GetAccess(DevicePtr ptr, Location location, Access* access) {
  if (!caps_.virtual_memory) return Status::kNotSupported;
  return Run(RecordOf(DeviceCall::kGetAccess, ptr, 0,
                      static_cast<std::uint64_t>(location.id)),
             [&](CallRecord*) {
               if (access == nullptr) return Status::kInvalidValue;
               const CUmemLocation where = ToCuda(location);
               DriverNumber flags = 0;
               const CUresult result =
                   driver_.MemGetAccess(&flags, &where, ptr);
               if (result != CUDA_SUCCESS) return ToStatus(result);
               *access = static_cast<Access>(flags);
               return Status::kSuccess;
             });
}

Status CudaDevice::ExportMemory(MemHandle handle, ShareType type,
                                Shareable* shareable) {
  if (!caps_.virtual_memory) return Status::kNotSupported;
  return Run(RecordOf(DeviceCall::kExportMemory, handle.value, 0,
                      static_cast<std::uint64_t>(type)),
             [&](CallRecord*) {
               if (shareable == nullptr || type == ShareType::kNone) {
                 return Status::kInvalidValue;
               }
               Shareable made;
               void* data = &made.fd;
               if (type == ShareType::kFabric) data = made.fabric.data();
               const CUresult result =
                   driver_.MemExport(data, handle.value, ToCuda(type), 0);
               if (result != CUDA_SUCCESS) return ToStatus(result);
               *shareable = made;
               return Status::kSuccess;
             });
}

Status CudaDevice::ImportMemory(MemHandle* handle, ShareType type,
                                const Shareable& shareable) {
  if (!caps_.virtual_memory) return Status::kNotSupported;
  return Run(RecordOf(DeviceCall::kImportMemory, 0, 0,
                      static_cast<std::uint64_t>(type)),
             [&](CallRecord* seen) {
               if (handle == nullptr || type == ShareType::kNone) {
                 return Status::kInvalidValue;
               }
               Shareable given = shareable;
               CUmemGenericAllocationHandle made = 0;
               const CUresult result = driver_.MemImport(
                   &made, OsHandle(type, &given), ToCuda(type));
               if (result != CUDA_SUCCESS) return ToStatus(result);
               handle->value = made;
               seen->ptr = made;
               return Status::kSuccess;
             });
}

Status CudaDevice::RetainMemory(DevicePtr ptr, MemHandle* handle) {
  if (!caps_.virtual_memory) return Status::kNotSupported;
  return Run(RecordOf(DeviceCall::kRetainMemory, ptr), [&](CallRecord* seen) {
    if (handle == nullptr) return Status::kInvalidValue;
    CUmemGenericAllocationHandle found = 0;
    const CUresult result =
        driver_.MemRetainAllocationHandle(&found, reinterpret_cast<void*>(ptr));
    if (result != CUDA_SUCCESS) return ToStatus(result);
    handle->value = found;
    seen->value = found;
    return Status::kSuccess;
  });
}

}  // namespace strata::cuda
