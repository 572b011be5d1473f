// Device and host memory that is allocated and freed at once, and copies and
// fills.

#include <array>

#include "strata/platform/cuda/cuda_device_run.h"
#include "strata/platform/cuda/cuda_types.h"

namespace strata::cuda {
namespace {

std::uint64_t ToNumber(const void* ptr) {
  return reinterpret_cast<std::uintptr_t>(ptr);
}

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

Status CudaDevice::MemAlloc(DevicePtr* ptr, std::size_t bytes) {
  return Run(RecordOf(DeviceCall::kMemAlloc, 0, bytes), [&](CallRecord* seen) {
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
  });
}

Status CudaDevice::MemFree(DevicePtr ptr) {
  return Run(RecordOf(DeviceCall::kMemFree, ptr), [&](CallRecord*) {
    if (ptr == 0) return Status::kSuccess;
    return ToStatus(driver_.MemFree(ptr));
  });
}

Status CudaDevice::MallocHost(void** ptr, std::size_t bytes, unsigned flags) {
  return Run(RecordOf(DeviceCall::kMallocHost, 0, bytes, flags),
             [&](CallRecord* seen) {
               if (ptr == nullptr) return Status::kInvalidValue;
               void* memory = nullptr;
               if (bytes != 0) {
                 const CUresult result =
                     driver_.MemHostAlloc(&memory, bytes, flags);
                 if (result != CUDA_SUCCESS) return ToStatus(result);
               }
               *ptr = memory;
               seen->ptr = ToNumber(memory);
               return Status::kSuccess;
             });
}

Status CudaDevice::FreeHost(void* ptr) {
  return Run(RecordOf(DeviceCall::kFreeHost, ToNumber(ptr)), [&](CallRecord*) {
    if (ptr == nullptr) return Status::kSuccess;
    return ToStatus(driver_.MemFreeHost(ptr));
  });
}

Status CudaDevice::HostRegister(void* ptr, std::size_t bytes, unsigned flags) {
  return Run(RecordOf(DeviceCall::kHostRegister, ToNumber(ptr), bytes, flags),
             [&](CallRecord*) {
               return ToStatus(driver_.MemHostRegister(ptr, bytes, flags));
             });
}

Status CudaDevice::HostUnregister(void* ptr) {
  return Run(
      RecordOf(DeviceCall::kHostUnregister, ToNumber(ptr)),
      [&](CallRecord*) { return ToStatus(driver_.MemHostUnregister(ptr)); });
}

Status CudaDevice::MallocManaged(DevicePtr* ptr, std::size_t bytes,
                                 unsigned flags) {
  if (!caps_.managed_memory) return Status::kNotSupported;
  return Run(RecordOf(DeviceCall::kMallocManaged, 0, bytes, flags),
             [&](CallRecord* seen) {
               if (ptr == nullptr) return Status::kInvalidValue;
               CUdeviceptr memory = 0;
               const CUresult result =
                   driver_.MemAllocManaged(&memory, bytes, flags);
               if (result != CUDA_SUCCESS) return ToStatus(result);
               *ptr = memory;
               seen->ptr = memory;
               return Status::kSuccess;
             });
}

Status CudaDevice::MemcpyAsync(DevicePtr target, DevicePtr source,
                               std::size_t bytes, Stream stream) {
  return RunOn(stream,
               RecordOf(DeviceCall::kMemcpyAsync, target, bytes, source),
               [&](CallRecord*) {
                 if (bytes == 0) return Status::kSuccess;
                 return ToStatus(driver_.MemcpyAsync(target, source, bytes,
                                                     ToCuda(stream)));
               });
}

Status CudaDevice::MemsetAsync(DevicePtr ptr, int value, std::size_t bytes,
                               Stream stream) {
  const auto byte = static_cast<unsigned char>(value);
  return RunOn(stream, RecordOf(DeviceCall::kMemsetAsync, ptr, bytes, byte),
               [&](CallRecord*) {
                 if (bytes == 0) return Status::kSuccess;
                 return ToStatus(
                     driver_.MemsetD8Async(ptr, byte, bytes, ToCuda(stream)));
               });
}

Status CudaDevice::PointerAttributes(DevicePtr ptr, PointerInfo* info) {
  return Run(RecordOf(DeviceCall::kPointerAttributes, ptr), [&](CallRecord*) {
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
  });
}

}  // namespace strata::cuda
