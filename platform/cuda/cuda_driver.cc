#include "strata/platform/cuda/cuda_driver.h"

#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace strata::cuda {
namespace {

// The name under which every driver of Linux is installed, and its lookup since
// CUDA 12.0.
constexpr char kLibrary[] = "libcuda.so.1";
constexpr char kLookup[] = "cuGetProcAddress_v2";

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

SimDriverInfoFunction FindSimDriverInfo(PFN_cuGetProcAddress_v12000 lookup) {
  return reinterpret_cast<SimDriverInfoFunction>(
      Find(lookup, kSimDriverInfoName, CUDA_VERSION));
}

// The reason of the last failure of dlopen or dlsym.
std::string LoaderReason() {
  const char* const text = dlerror();
  return text != nullptr ? text : "unknown error of the loader";
}

// The driver's own lookup function, from which all others come; null with
// `problem` filled if there is none. The driver is never unloaded.
PFN_cuGetProcAddress_v12000 FindLookup(std::string* problem) {
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    *problem = "there is no driver: " + LoaderReason();
    return nullptr;
  }
  void* const lookup = dlsym(library, kLookup);
  if (lookup == nullptr) *problem = "the driver is too old: " + LoaderReason();
  return reinterpret_cast<PFN_cuGetProcAddress_v12000>(lookup);
}

// "no CUDA-capable device is detected (CUDA_ERROR_NO_DEVICE, 100)".
std::string ReasonOf(const CudaDriver& driver, CUresult result) {
  const char* text = nullptr;
  const char* name = nullptr;
  driver.GetErrorString(result, &text);
  driver.GetErrorName(result, &name);
  std::string reason(text != nullptr ? text : "unknown error");
  reason.append(" (").append(name != nullptr ? name : "unnamed").append(", ");
  return reason.append(std::to_string(static_cast<int>(result))).append(")");
}

}  // namespace

// cuda.h defines macros for some names (cuMemAlloc is cuMemAlloc_v2). The
// driver does not know the expanded names, so # has to apply before any
// expansion.
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
  const PFN_cuGetProcAddress_v12000 lookup = FindLookup(&problem);
  if (lookup == nullptr) throw std::runtime_error(problem);
  const std::string missing = FindCudaFunctions(lookup, &driver);
  if (!missing.empty()) {
    throw std::runtime_error("the driver is too old: it lacks" + missing);
  }
  driver.simulated = FindSimDriverInfo(lookup);
  const CUresult result = driver.Init(0);
  if (result != CUDA_SUCCESS) {
    throw std::runtime_error(ReasonOf(driver, result));
  }
  return driver;
}

}  // namespace strata::cuda
