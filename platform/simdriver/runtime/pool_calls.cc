// Stream-ordered pools. Structures and numbers are those of the driver.

#include <cstring>

#include "strata/platform/simdriver/runtime/calls.h"

namespace strata::simdriver::runtime {
namespace {

static_assert(sizeof(cudaMemPoolProps) == sizeof(CUmemPoolProps));
static_assert(sizeof(cudaMemAccessDesc) == sizeof(CUmemAccessDesc));

// Runs `body(CUdeviceptr*)` and returns the address that it made.
template <class Body>
CUresult Make(void** ptr, Body body) {
  if (ptr == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUdeviceptr made = 0;
  const CUresult result = body(&made);
  if (result == CUDA_SUCCESS) *ptr = reinterpret_cast<void*>(made);
  return result;
}

}  // namespace

cudaError_t DeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return WithDriver([&] { return cuDeviceGetDefaultMemPool(pool, device); });
}

cudaError_t DeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return WithDriver([&] { return cuDeviceGetMemPool(pool, device); });
}

cudaError_t DeviceSetMemPool(int device, cudaMemPool_t pool) {
  return WithDriver([&] { return cuDeviceSetMemPool(device, pool); });
}

cudaError_t MemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* props) {
  return WithContext([&] {
    if (props == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUmemPoolProps same = {};
    std::memcpy(&same, props, sizeof(same));
    return cuMemPoolCreate(pool, &same);
  });
}

cudaError_t MemPoolDestroy(cudaMemPool_t pool) {
  return WithContext([&] { return cuMemPoolDestroy(pool); });
}

cudaError_t MemPoolTrimTo(cudaMemPool_t pool, std::size_t keep_bytes) {
  return WithContext([&] { return cuMemPoolTrimTo(pool, keep_bytes); });
}

cudaError_t MemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute,
                                void* value) {
  return WithContext([&] {
    return cuMemPoolSetAttribute(
        pool, static_cast<CUmemPool_attribute>(attribute), value);
  });
}

cudaError_t MemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute,
                                void* value) {
  return WithContext([&] {
    return cuMemPoolGetAttribute(
        pool, static_cast<CUmemPool_attribute>(attribute), value);
  });
}

cudaError_t MemPoolSetAccess(cudaMemPool_t pool,
                             const cudaMemAccessDesc* access,
                             std::size_t count) {
  return WithContext([&] {
    return cuMemPoolSetAccess(
        pool, reinterpret_cast<const CUmemAccessDesc*>(access), count);
  });
}

cudaError_t MemPoolExport(void* handle, cudaMemPool_t pool,
                          cudaMemAllocationHandleType type, unsigned flags) {
  return WithContext([&] {
    return cuMemPoolExportToShareableHandle(
        handle, pool, static_cast<CUmemAllocationHandleType>(type), flags);
  });
}

cudaError_t MemPoolImport(cudaMemPool_t* pool, void* handle,
                          cudaMemAllocationHandleType type, unsigned flags) {
  return WithContext([&] {
    return cuMemPoolImportFromShareableHandle(
        pool, handle, static_cast<CUmemAllocationHandleType>(type), flags);
  });
}

STRATA_SIM_RUNTIME_STREAM_FUNCTION(
    MallocAsync, (void** ptr, std::size_t bytes, cudaStream_t stream), {
      return WithContext([&] {
        return Make(ptr, [&](CUdeviceptr* made) {
          return cuMemAllocAsync(made, bytes, StreamOf(null, stream));
        });
      });
    })

STRATA_SIM_RUNTIME_STREAM_FUNCTION(
    MallocFromPoolAsync,
    (void** ptr, std::size_t bytes, cudaMemPool_t pool, cudaStream_t stream), {
      return WithContext([&] {
        return Make(ptr, [&](CUdeviceptr* made) {
          return cuMemAllocFromPoolAsync(made, bytes, pool,
                                         StreamOf(null, stream));
        });
      });
    })

STRATA_SIM_RUNTIME_STREAM_FUNCTION(FreeAsync, (void* ptr, cudaStream_t stream),
                                   {
                                     return WithContext([&] {
                                       return cuMemFreeAsync(
                                           ToPtr(ptr), StreamOf(null, stream));
                                     });
                                   })

}  // namespace strata::simdriver::runtime
