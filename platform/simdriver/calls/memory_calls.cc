// Memory of the device and of the host, at once, and copies.

#include "strata/platform/simdriver/context.h"
#include "strata/platform/simdriver/host_reads.h"

namespace strata::simdriver {
namespace {

DevicePtr ToPtr(const void* ptr) { return reinterpret_cast<DevicePtr>(ptr); }

// Submits a copy, and counts it if it brings bytes to the host.
Status Submit(SimDevice& device, const Stream& stream, DevicePtr target,
              DevicePtr source, std::size_t bytes) {
  if (target >= sim::kDeviceWindowBegin) {
    return device.MemcpyAsync(target, source, bytes, stream);
  }
  sim::ReadCounter* const counter = Reads().Here();
  const Status status =
      device.MemcpyAsync(target, source, bytes, stream, counter);
  Reads().AfterCopy(counter);
  return status;
}

// A hint without effect: memory of the simulated device does not move.
CUresult Prefetch(NullStream null, DevicePtr ptr, std::size_t bytes,
                  CUstream handle) {
  return OnStream(null, handle, [&](SimDevice& device, const Stream&) {
    PointerInfo info;
    const Status status = device.PointerAttributes(ptr, &info);
    if (status != Status::kSuccess) return status;
    return bytes != 0 && info.type == MemoryType::kManaged
               ? Status::kSuccess
               : Status::kInvalidValue;
  });
}

bool IsOrdinal(int device) {
  return device >= 0 && device < FindProcess()->platform.device_count();
}

}  // namespace

CUresult MemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  return OnCurrentDevice(&SimDevice::MemGetInfo, free_bytes, total_bytes);
}

CUresult MemAlloc(CUdeviceptr* ptr, std::size_t bytes) {
  return OnCurrentDevice([&](SimDevice& device) {
    if (bytes == 0) return Status::kInvalidValue;
    return PutMade(ptr, device, &SimDevice::MemAlloc, bytes);
  });
}

CUresult MemGetAddressRange(CUdeviceptr* base, std::size_t* bytes,
                            CUdeviceptr ptr) {
  SimDevice* device = nullptr;
  const CUresult result = CurrentDevice(&device);
  if (result != CUDA_SUCCESS) return result;
  DevicePtr found = 0;
  std::uint64_t size = 0;
  if (device->AddressRange(ptr, &found, &size) != Status::kSuccess) {
    return CUDA_ERROR_NOT_FOUND;
  }
  if (base != nullptr) *base = found;
  if (bytes != nullptr) *bytes = size;
  return CUDA_SUCCESS;
}

CUresult MemFree(CUdeviceptr ptr) {
  return OnCurrentDevice([&](SimDevice& device) {
    SimDevice* const owner = FindProcess()->platform.OwnerOf(DevicePtr{ptr});
    return (owner != nullptr ? *owner : device).MemFree(ptr);
  });
}

CUresult MemAllocManaged(CUdeviceptr* ptr, std::size_t bytes, unsigned flags) {
  return OnCurrentDevice([&](SimDevice& device) {
    return PutMade(ptr, device, &SimDevice::MallocManaged, bytes, flags);
  });
}

CUresult MemHostAlloc(void** ptr, std::size_t bytes, unsigned flags) {
  return OnCurrentDevice([&](SimDevice& device) {
    if (ptr == nullptr || bytes == 0) return Status::kInvalidValue;
    return device.MallocHost(ptr, bytes, flags);
  });
}

CUresult MemAllocHost(void** ptr, std::size_t bytes) {
  return MemHostAlloc(ptr, bytes, 0);
}

CUresult MemFreeHost(void* ptr) {
  return OnCurrentDevice([&](SimDevice& device) {
    if (ptr == nullptr) return Status::kInvalidValue;
    return device.FreeHost(ptr);
  });
}

CUresult MemHostRegister(void* ptr, std::size_t bytes, unsigned flags) {
  return OnCurrentDevice(&SimDevice::HostRegister, ptr, bytes, flags);
}

CUresult MemHostUnregister(void* ptr) {
  return OnCurrentDevice(&SimDevice::HostUnregister, ptr);
}

CUresult MemHostGetDevicePointer(CUdeviceptr* result, void* ptr,
                                 unsigned flags) {
  return OnCurrentDevice([&](SimDevice& device) {
    if (result == nullptr || flags != 0) return Status::kInvalidValue;
    PointerInfo info;
    const Status status = device.PointerAttributes(ToPtr(ptr), &info);
    if (status != Status::kSuccess) return status;
    if (info.type != MemoryType::kHost && info.type != MemoryType::kManaged) {
      return Status::kInvalidValue;
    }
    *result = ToPtr(ptr);
    return Status::kSuccess;
  });
}

CUresult Memcpy(NullStream null, CUdeviceptr target, CUdeviceptr source,
                std::size_t bytes) {
  // The copy is complete when the call returns.
  return OnStream(null, nullptr, [&](SimDevice& device, const Stream& stream) {
    if (bytes == 0) return Status::kSuccess;
    const Status status = Submit(device, stream, target, source, bytes);
    return status == Status::kSuccess ? device.StreamSynchronize(stream)
                                      : status;
  });
}

CUresult MemcpyHtoD(NullStream null, CUdeviceptr target, const void* source,
                    std::size_t bytes) {
  return Memcpy(null, target, ToPtr(source), bytes);
}

CUresult MemcpyDtoH(NullStream null, void* target, CUdeviceptr source,
                    std::size_t bytes) {
  return Memcpy(null, ToPtr(target), source, bytes);
}

CUresult MemcpyDtoD(NullStream null, CUdeviceptr target, CUdeviceptr source,
                    std::size_t bytes) {
  return Memcpy(null, target, source, bytes);
}

CUresult MemcpyAsync(NullStream null, CUdeviceptr target, CUdeviceptr source,
                     std::size_t bytes, CUstream handle) {
  return OnStream(null, handle, [&](SimDevice& device, const Stream& stream) {
    if (bytes == 0) return Status::kSuccess;
    return Submit(device, stream, target, source, bytes);
  });
}

CUresult MemcpyHtoDAsync(NullStream null, CUdeviceptr target,
                         const void* source, std::size_t bytes,
                         CUstream stream) {
  return MemcpyAsync(null, target, ToPtr(source), bytes, stream);
}

CUresult MemcpyDtoHAsync(NullStream null, void* target, CUdeviceptr source,
                         std::size_t bytes, CUstream stream) {
  return MemcpyAsync(null, ToPtr(target), source, bytes, stream);
}

CUresult MemcpyDtoDAsync(NullStream null, CUdeviceptr target,
                         CUdeviceptr source, std::size_t bytes,
                         CUstream stream) {
  return MemcpyAsync(null, target, source, bytes, stream);
}

CUresult MemPrefetchAsync(NullStream null, CUdeviceptr ptr, std::size_t bytes,
                          CUdevice device, CUstream stream) {
  if (Ready() == CUDA_SUCCESS && device != CU_DEVICE_CPU &&
      !IsOrdinal(device)) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  return Prefetch(null, ptr, bytes, stream);
}

CUresult MemPrefetchToLocation(NullStream null, CUdeviceptr ptr,
                               std::size_t bytes, CUmemLocation location,
                               unsigned flags, CUstream stream) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (Ready() == CUDA_SUCCESS && location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
      !IsOrdinal(location.id)) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  return Prefetch(null, ptr, bytes, stream);
}

}  // namespace strata::simdriver
