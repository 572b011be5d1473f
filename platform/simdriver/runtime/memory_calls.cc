// Memory of the device and of the host, and stream-ordered pools.

#include <cstring>

#include "strata/platform/simdriver/runtime/calls.h"

namespace strata::simdriver::runtime {
namespace {

constexpr std::size_t kPitchBytes = 512;

// Runs `body()`, which sets `*ptr`, if `bytes` is not 0. A request for 0 bytes
// succeeds with a null pointer.
template <class Body>
cudaError_t Allocate(void** ptr, std::size_t bytes, Body body) {
  return WithContext([&] {
    if (ptr == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *ptr = nullptr;
    return bytes == 0 ? CUDA_SUCCESS : body();
  });
}

CUresult MallocDevice(void** ptr, std::size_t bytes) {
  return Make(ptr, [&](CUdeviceptr* made) { return cuMemAlloc(made, bytes); });
}

}  // namespace

cudaError_t Malloc(void** ptr, std::size_t bytes) {
  return Allocate(ptr, bytes, [&] { return MallocDevice(ptr, bytes); });
}

cudaError_t MallocPitch(void** ptr, std::size_t* pitch, std::size_t width,
                        std::size_t height) {
  if (pitch == nullptr || width > ~std::size_t{0} - kPitchBytes) {
    return Note(cudaErrorInvalidValue);
  }
  const std::size_t row = (width + kPitchBytes - 1) / kPitchBytes * kPitchBytes;
  if (height != 0 && row > ~std::size_t{0} / height) {
    return Note(cudaErrorInvalidValue);
  }
  const cudaError_t error = Allocate(
      ptr, row * height, [&] { return MallocDevice(ptr, row * height); });
  if (error == cudaSuccess) *pitch = row;
  return error;
}

cudaError_t Free(void* ptr) {
  return WithContext(
      [&] { return ptr == nullptr ? CUDA_SUCCESS : cuMemFree(ToPtr(ptr)); });
}

cudaError_t MallocManaged(void** ptr, std::size_t bytes, unsigned flags) {
  return WithContext([&] {
    if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    return Make(ptr, [&](CUdeviceptr* made) {
      return cuMemAllocManaged(made, bytes, flags);
    });
  });
}

cudaError_t HostAlloc(void** ptr, std::size_t bytes, unsigned flags) {
  return Allocate(ptr, bytes,
                  [&] { return cuMemHostAlloc(ptr, bytes, flags); });
}

cudaError_t MallocHost(void** ptr, std::size_t bytes) {
  return HostAlloc(ptr, bytes, 0);
}

cudaError_t FreeHost(void* ptr) {
  return WithContext(
      [&] { return ptr == nullptr ? CUDA_SUCCESS : cuMemFreeHost(ptr); });
}

cudaError_t HostGetDevicePointer(void** result, void* ptr, unsigned flags) {
  return WithContext([&] {
    return Make(result, [&](CUdeviceptr* found) {
      return cuMemHostGetDevicePointer(found, ptr, flags);
    });
  });
}

cudaError_t PointerGetAttributes(cudaPointerAttributes* result,
                                 const void* ptr) {
  return WithContext([&] {
    if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
    unsigned type = 0;
    int device = 0;
    unsigned char managed = 0;
    cudaPointerAttributes found = {};
    CUpointer_attribute attributes[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
        CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
        CU_POINTER_ATTRIBUTE_HOST_POINTER};
    void* values[] = {&type, &device, &managed, &found.devicePointer,
                      &found.hostPointer};
    const CUresult answer =
        cuPointerGetAttributes(5, attributes, values, ToPtr(ptr));
    if (answer != CUDA_SUCCESS) return answer;
    found.device = device;
    found.type = managed != 0                   ? cudaMemoryTypeManaged
                 : type == CU_MEMORYTYPE_HOST   ? cudaMemoryTypeHost
                 : type == CU_MEMORYTYPE_DEVICE ? cudaMemoryTypeDevice
                                                : cudaMemoryTypeUnregistered;
    *result = found;
    return CUDA_SUCCESS;
  });
}

// A hint without effect: memory of the simulated device does not move.
cudaError_t MemAdvise(const void* ptr, std::size_t bytes, cudaMemoryAdvise,
                      cudaMemLocation) {
  return WithContext([&] {
    return ptr != nullptr && bytes != 0 ? CUDA_SUCCESS
                                        : CUDA_ERROR_INVALID_VALUE;
  });
}

cudaError_t MemPrefetchAsync(NullStream null, const void* ptr,
                             std::size_t bytes, cudaMemLocation location,
                             unsigned flags, cudaStream_t stream) {
  return WithContext([&] {
    CUmemLocation place = {};
    place.type = static_cast<CUmemLocationType>(location.type);
    place.id = location.id;
    return cuMemPrefetchAsync(ToPtr(ptr), bytes, place, flags,
                              StreamOf(null, stream));
  });
}

static_assert(sizeof(cudaMemPoolProps) == sizeof(CUmemPoolProps));

cudaError_t MemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* props) {
  return WithContext([&] {
    if (props == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUmemPoolProps same = {};
    std::memcpy(&same, props, sizeof(same));
    return cuMemPoolCreate(pool, &same);
  });
}

cudaError_t MallocAsync(NullStream null, void** ptr, std::size_t bytes,
                        cudaStream_t stream) {
  return WithContext([&] {
    return Make(ptr, [&](CUdeviceptr* made) {
      return cuMemAllocAsync(made, bytes, StreamOf(null, stream));
    });
  });
}

cudaError_t MallocFromPoolAsync(NullStream null, void** ptr, std::size_t bytes,
                                cudaMemPool_t pool, cudaStream_t stream) {
  return WithContext([&] {
    return Make(ptr, [&](CUdeviceptr* made) {
      return cuMemAllocFromPoolAsync(made, bytes, pool, StreamOf(null, stream));
    });
  });
}

}  // namespace strata::simdriver::runtime
