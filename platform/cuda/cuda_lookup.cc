#include "strata/platform/cuda/cuda_lookup.h"

namespace strata {

cudaError_t FindDriverLookup(PFN_cuGetProcAddress_v12000* lookup) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  constexpr auto kFlags = cudaEnableDefault;
#if CUDART_VERSION >= 12050
  const cudaError_t error = cudaGetDriverEntryPointByVersion(
      "cuGetProcAddress", &found, 12000, kFlags, &result);
#else
  const cudaError_t error =
      cudaGetDriverEntryPoint("cuGetProcAddress", &found, kFlags, &result);
#endif
  if (error != cudaSuccess) return error;
  if (found == nullptr || result != cudaDriverEntryPointSuccess) {
    return cudaErrorSymbolNotFound;
  }
  *lookup = reinterpret_cast<PFN_cuGetProcAddress_v12000>(found);
  return cudaSuccess;
}

std::string CudaReason(cudaError_t error) {
  std::string reason = cudaGetErrorString(error);
  reason.append(" (").append(cudaGetErrorName(error)).append(", ");
  return reason.append(std::to_string(static_cast<int>(error))).append(")");
}

}  // namespace strata
