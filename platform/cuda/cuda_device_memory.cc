// Device and host memory that is allocated and freed at once, and copies and
// fills.

#include <array>

#include "strata/platform/cuda/cuda_device.h"
#include "strata/platform/cuda/cuda_types.h"

namespace strata::cuda {
namespace {

MemoryType TypeOf(unsigned driver_type, bool managed) {
  if (managed) return MemoryType::kManaged;
  switch (driver_type) {
    case CU_MEMORYTYPE_HOST:
      return MemoryType::kHost;
    case CU_MEMORYTYPE_DEVICE:
      return MemoryType::kDevice;
    default:
      return MemoryType::kUnregistered;
  }
}

}  // namespace

Status CudaDevice::DoMemAlloc(Call* seen, DevicePtr* ptr, std::size_t bytes) {
  if (ptr == nullptr) return Status::kInvalidValue;
  CUdeviceptr memory = 0;
  // The driver refuses to allocate 0 bytes; the runtime accepts it.
  if (bytes != 0) {
    const CUresult result = driver_.MemAlloc(&memory, bytes);
    if (result != CUDA_SUCCESS) return ToStatus(result);
  }
  *ptr = memory;
  seen->ptr = memory;
  return Status::kSuccess;
}

Status CudaDevice::DoMemFree(Call*, DevicePtr ptr) {
  if (ptr == 0) return Status::kSuccess;
  return ToStatus(driver_.MemFree(ptr));
}

Status CudaDevice::DoMallocHost(Call* seen, void** ptr, std::size_t bytes,
                                unsigned flags) {
  if (ptr == nullptr) return Status::kInvalidValue;
  void* memory = nullptr;
  if (bytes != 0) {
    const CUresult result = driver_.MemHostAlloc(&memory, bytes, flags);
    if (result != CUDA_SUCCESS) return ToStatus(result);
  }
  *ptr = memory;
  seen->ptr = NumberOf(memory);
  return Status::kSuccess;
}

Status CudaDevice::DoFreeHost(Call*, void* ptr) {
  if (ptr == nullptr) return Status::kSuccess;
  return ToStatus(driver_.MemFreeHost(ptr));
}

Status CudaDevice::DoHostRegister(Call*, void* ptr, std::size_t bytes,
                                  unsigned flags) {
  return ToStatus(driver_.MemHostRegister(ptr, bytes, flags));
}

Status CudaDevice::DoHostUnregister(Call*, void* ptr) {
  return ToStatus(driver_.MemHostUnregister(ptr));
}

Status CudaDevice::DoMallocManaged(Call* seen, DevicePtr* ptr,
                                   std::size_t bytes, unsigned flags) {
  if (ptr == nullptr) return Status::kInvalidValue;
  CUdeviceptr memory = 0;
  const CUresult result = driver_.MemAllocManaged(&memory, bytes, flags);
  return Give(result, memory, ptr, seen);
}

Status CudaDevice::DoMemcpyAsync(Call*, DevicePtr target, DevicePtr source,
                                 std::size_t bytes, Stream stream) {
  if (bytes == 0) return Status::kSuccess;
  return ToStatus(driver_.MemcpyAsync(target, source, bytes, ToCuda(stream)));
}

Status CudaDevice::DoMemsetAsync(Call*, DevicePtr ptr, int value,
                                 std::size_t bytes, Stream stream) {
  if (bytes == 0) return Status::kSuccess;
  return ToStatus(driver_.MemsetD8Async(ptr, static_cast<unsigned char>(value),
                                        bytes, ToCuda(stream)));
}

Status CudaDevice::DoPointerAttributes(Call*, DevicePtr ptr,
                                       PointerInfo* info) {
  if (info == nullptr) return Status::kInvalidValue;
  unsigned type = 0;
  int device = -1;
  unsigned managed = 0;  // the driver writes a bool or a word
  std::array<CUpointer_attribute, 3> attributes = {
      CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
      CU_POINTER_ATTRIBUTE_IS_MANAGED};
  std::array<void*, 3> values = {&type, &device, &managed};
  // A query of several attributes succeeds for any address.
  const CUresult result =
      driver_.PointerGetAttributes(static_cast<unsigned>(attributes.size()),
                                   attributes.data(), values.data(), ptr);
  if (result != CUDA_SUCCESS) return ToStatus(result);
  info->type = TypeOf(type, managed != 0);
  info->device = info->type == MemoryType::kUnregistered ? -1 : device;
  return Status::kSuccess;
}

}  // namespace strata::cuda
