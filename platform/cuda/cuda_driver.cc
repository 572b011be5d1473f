#include "strata/platform/cuda/cuda_driver.h"

#include <stdexcept>
#include <string>
#include <thread>

#include "strata/platform/cuda/cuda_lookup.h"

namespace strata {
namespace {

// Null if the driver has no such function.
void* Find(PFN_cuGetProcAddress_v12000 lookup, const char* symbol,
           int version) {
  void* found = nullptr;
  CUdriverProcAddressQueryResult result = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  const CUresult error =
      lookup(symbol, &found, version, CU_GET_PROC_ADDRESS_DEFAULT, &result);
  return error == CUDA_SUCCESS && result == CU_GET_PROC_ADDRESS_SUCCESS
             ? found
             : nullptr;
}

// Fills `driver`; returns what is wrong, or nothing.
std::string Load(CudaDriver* driver) {
  PFN_cuGetProcAddress_v12000 lookup = nullptr;
  const cudaError_t error = FindDriverLookup(&lookup);
  if (error != cudaSuccess) return CudaReason(error);
  const std::string missing = FindCudaFunctions(lookup, driver);
  if (!missing.empty()) return "the driver is too old: it lacks" + missing;
  const CUresult result = driver->Init(0);
  return result == CUDA_SUCCESS ? std::string()
                                : CudaReason(static_cast<cudaError_t>(result));
}

}  // namespace

// cuda.h makes macros of some names (cuMemAlloc is cuMemAlloc_v2), and the
// driver knows none of what they stand for: # has to come before any expansion.
std::string FindCudaFunctions(PFN_cuGetProcAddress_v12000 lookup,
                              CudaDriver* driver) {
  std::string missing;
#define STRATA_CUDA_NEWER_FUNCTION(member, symbol, version)    \
  driver->member = reinterpret_cast<decltype(driver->member)>( \
      Find(lookup, #symbol, version));
#define STRATA_CUDA_FUNCTION(member, symbol, version)          \
  driver->member = reinterpret_cast<decltype(driver->member)>( \
      Find(lookup, #symbol, version));                         \
  if (driver->member == nullptr) missing.append(" " #symbol);
#include "strata/platform/cuda/driver_functions.def"
#undef STRATA_CUDA_NEWER_FUNCTION
#undef STRATA_CUDA_FUNCTION
  return missing;
}

CudaDriver LoadCudaDriver() {
  CudaDriver driver;
  std::string problem;
  // The runtime keeps the last error per thread: this thread's is not ours.
  std::thread([&] { problem = Load(&driver); }).join();
  if (!problem.empty()) throw std::runtime_error(problem);
  return driver;
}

}  // namespace strata
