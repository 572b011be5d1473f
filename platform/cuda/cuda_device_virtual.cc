// Virtual memory of a GPU.

#include "strata/platform/cuda/cuda_device.h"
#include "strata/platform/cuda/cuda_types.h"

namespace strata::cuda {

Status CudaDevice::DoGranularity(Call*, const MemProperties& properties,
                                 bool recommended, std::size_t* bytes) {
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
}

Status CudaDevice::DoReserveRange(Call* seen, DevicePtr* ptr, std::size_t bytes,
                                  std::size_t alignment, DevicePtr hint) {
  if (ptr == nullptr) return Status::kInvalidValue;
  CUdeviceptr range = 0;
  const CUresult result =
      driver_.MemAddressReserve(&range, bytes, alignment, hint, 0);
  return Give(result, range, ptr, seen);
}

Status CudaDevice::DoFreeRange(Call*, DevicePtr ptr, std::size_t bytes) {
  return ToStatus(driver_.MemAddressFree(ptr, bytes));
}

Status CudaDevice::DoCreateMemory(Call* seen, MemHandle* handle,
                                  std::size_t bytes,
                                  const MemProperties& properties) {
  if (handle == nullptr) return Status::kInvalidValue;
  const CUmemAllocationProp prop = ToCuda(properties);
  CUmemGenericAllocationHandle made = 0;
  const CUresult result = driver_.MemCreate(&made, bytes, &prop, 0);
  return Give(result, made, handle, seen);
}

Status CudaDevice::DoReleaseMemory(Call*, MemHandle handle) {
  return ToStatus(driver_.MemRelease(handle.value));
}

Status CudaDevice::DoMapRange(Call*, DevicePtr ptr, std::size_t bytes,
                              std::size_t offset, MemHandle handle) {
  return ToStatus(driver_.MemMap(ptr, bytes, offset, handle.value, 0));
}

Status CudaDevice::DoUnmapRange(Call*, DevicePtr ptr, std::size_t bytes) {
  return ToStatus(driver_.MemUnmap(ptr, bytes));
}

Status CudaDevice::DoSetAccess(Call*, DevicePtr ptr, std::size_t bytes,
                               const AccessDescriptor* access,
                               std::size_t count) {
  if (access == nullptr && count != 0) return Status::kInvalidValue;
  const auto descriptors = ToCuda(access, count);
  return ToStatus(driver_.MemSetAccess(ptr, bytes, descriptors.data(), count));
}

Status CudaDevice::DoGetAccess(Call*, DevicePtr ptr, Location location,
                               Access* access) {
  if (access == nullptr) return Status::kInvalidValue;
  const CUmemLocation where = ToCuda(location);
  DriverNumber flags = 0;
  const CUresult result = driver_.MemGetAccess(&flags, &where, ptr);
  if (result != CUDA_SUCCESS) return ToStatus(result);
  *access = static_cast<Access>(flags);
  return Status::kSuccess;
}

Status CudaDevice::DoExportMemory(Call*, MemHandle handle, ShareType type,
                                  Shareable* shareable) {
  return Export(type, shareable, [&](void* data) {
    return driver_.MemExport(data, handle.value, ToCuda(type), 0);
  });
}

Status CudaDevice::DoImportMemory(Call* seen, MemHandle* handle, ShareType type,
                                  const Shareable& shareable) {
  if (handle == nullptr || type == ShareType::kNone) {
    return Status::kInvalidValue;
  }
  Shareable given = shareable;
  CUmemGenericAllocationHandle made = 0;
  const CUresult result =
      driver_.MemImport(&made, OsHandle(type, &given), ToCuda(type));
  return Give(result, made, handle, seen);
}

Status CudaDevice::DoRetainMemory(Call* seen, DevicePtr ptr,
                                  MemHandle* handle) {
  if (handle == nullptr) return Status::kInvalidValue;
  CUmemGenericAllocationHandle found = 0;
  const CUresult result =
      driver_.MemRetainAllocationHandle(&found, reinterpret_cast<void*>(ptr));
  if (result != CUDA_SUCCESS) return ToStatus(result);
  handle->value = found;
  seen->value = found;
  return Status::kSuccess;
}

}  // namespace strata::cuda
