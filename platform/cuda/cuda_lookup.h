#ifndef STRATA_PLATFORM_CUDA_CUDA_LOOKUP_H_
#define STRATA_PLATFORM_CUDA_CUDA_LOOKUP_H_

// What the CUDA runtime is asked: where the driver is, and why there is none.
//
// Model: nothing else calls the runtime, and this file needs nothing else of
//   Strata, so that both can be a library beside the shared one,
//   libstrata_cudart.so. The static runtime has a thread-local aligned to 4096
//   bytes; a library that holds it and our initial-exec thread-locals, too,
//   cannot be loaded into a process that runs (glibc: "cannot allocate memory
//   in static TLS block").

#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include <string>

namespace strata {

// The driver's own lookup function, from which all others come.
cudaError_t FindDriverLookup(PFN_cuGetProcAddress_v12000* lookup);

// `error` in CUDA's words, with its name and number.
std::string CudaReason(cudaError_t error);

}  // namespace strata

#endif  // STRATA_PLATFORM_CUDA_CUDA_LOOKUP_H_
