#ifndef STRATA_PLATFORM_SIMDRIVER_RUNTIME_KERNELS_H_
#define STRATA_PLATFORM_SIMDRIVER_RUNTIME_KERNELS_H_

#include <cuda.h>

#include "strata/platform/simdriver/runtime/calls.h"
#include "strata/platform/simdriver/runtime/contexts.h"
#include "strata/platform/simdriver/runtime/program_images.h"

namespace strata::simdriver::runtime {

// Runs `body(CUfunction)`, which returns a CUresult or a cudaError_t, with the
// kernel of `stub`: a function of the program, or a result of GetKernel.
// cudaErrorInvalidDeviceFunction if there is no such kernel.
template <class Body>
cudaError_t WithKernel(const void* stub, Body body) {
  return WithContext([&] {
    CUfunction function = nullptr;
    const CUresult result = Images().FindKernel(stub, &function);
    if (result == CUDA_ERROR_NOT_FOUND) return cudaErrorInvalidDeviceFunction;
    return result == CUDA_SUCCESS ? ToError(body(function)) : ToError(result);
  });
}

}  // namespace strata::simdriver::runtime

#endif  // STRATA_PLATFORM_SIMDRIVER_RUNTIME_KERNELS_H_
