// Versions, functions of the driver by name, and the names of functions that
// the stand-in lacks.

#include "strata/platform/simdriver/runtime/calls.h"

// Counts a call of a function of the runtime that the stand-in lacks.
extern "C" CUresult cuStrataSimUnimplemented(const char* name);

namespace strata::simdriver::runtime {
namespace {

CUresult FindEntryPoint(NullStream null, const char* symbol, void** function,
                        unsigned version, unsigned long long flags,  // NOLINT
                        cudaDriverEntryPointQueryResult* status) {
  if (flags == cudaEnableDefault && null == NullStream::kPerThread) {
    flags = cudaEnablePerThreadDefaultStream;
  }
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
  const CUresult result =
      cuGetProcAddress(symbol, function, static_cast<int>(version), flags,
                       status != nullptr ? &found : nullptr);
  if (status != nullptr) {
    *status = static_cast<cudaDriverEntryPointQueryResult>(found);
  }
  return result;
}

cudaError_t Unimplemented(const char* name) {
  return WithDriver([&] { return cuStrataSimUnimplemented(name); });
}

}  // namespace

cudaError_t DriverGetVersion(int* version) {
  return Note(ToError(cuDriverGetVersion(version)));
}

cudaError_t RuntimeGetVersion(int* version) {
  return Note(ToError(Put(version, CUDART_VERSION)));
}

cudaError_t GetDriverEntryPoint(NullStream null, const char* symbol,
                                void** function,
                                unsigned long long flags,  // NOLINT
                                cudaDriverEntryPointQueryResult* status) {
  return WithDriver([&] {
    return FindEntryPoint(null, symbol, function, CUDART_VERSION, flags,
                          status);
  });
}

cudaError_t GetDriverEntryPointByVersion(
    NullStream null, const char* symbol, void** function, unsigned version,
    unsigned long long flags,  // NOLINT
    cudaDriverEntryPointQueryResult* status) {
  return WithDriver([&] {
    return FindEntryPoint(null, symbol, function, version, flags, status);
  });
}

// There is no profiler.
cudaError_t ProfilerStart() { return cudaSuccess; }
cudaError_t ProfilerStop() { return cudaSuccess; }

#define STRATA_SIM_RUNTIME_UNIMPLEMENTED(name)                            \
  cudaError_t Exported_##name() __asm__(#name) STRATA_SIM_RUNTIME_EXPORT; \
  cudaError_t Exported_##name() { return Unimplemented(#name); }
#include "strata/platform/simdriver/runtime/unimplemented.def"
#undef STRATA_SIM_RUNTIME_UNIMPLEMENTED

}  // namespace strata::simdriver::runtime
