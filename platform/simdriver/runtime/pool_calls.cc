// Stream-ordered pools.

#include <cstring>

#include "strata/platform/simdriver/runtime/calls.h"

namespace strata::simdriver::runtime {
namespace {

static_assert(sizeof(cudaMemPoolProps) == sizeof(CUmemPoolProps));

}  // namespace

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
