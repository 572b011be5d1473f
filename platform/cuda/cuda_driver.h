#ifndef STRATA_PLATFORM_CUDA_CUDA_DRIVER_H_
#define STRATA_PLATFORM_CUDA_CUDA_DRIVER_H_

#include <cuda.h>
#include <cudaTypedefs.h>

#include <string>

#include "strata/platform/simdriver/sim_driver_info.h"
#include "strata/platform/status.h"

namespace strata::cuda {

// The type of the driver's 64-bit results, which is not std::uint64_t.
using DriverNumber = unsigned long long;  // NOLINT(google-runtime-int)

// The functions of the CUDA driver, found at run time (driver_functions.def).
//
// Model: the CUDA platform calls the driver, not the runtime. A driver call
//   neither reads nor sets the calling thread's "last error", which the runtime
//   keeps. So the user's last error never changes. The current device can also
//   be restored exactly, even where none was current. Handles are the same in
//   both: a cudaStream_t is a CUstream. No runtime is linked: the dynamic
//   loader finds the driver.
struct CudaDriver {
#define STRATA_CUDA_FUNCTION(member, symbol, version) \
  PFN_##symbol##_v##version member = nullptr;
#define STRATA_CUDA_NEWER_FUNCTION STRATA_CUDA_FUNCTION
#include "strata/platform/cuda/driver_functions.def"
#undef STRATA_CUDA_NEWER_FUNCTION
#undef STRATA_CUDA_FUNCTION
  // Null unless the driver is the stand-in over the simulated device.
  SimDriverInfoFunction simulated = nullptr;
};

// Fills `driver` with the functions that `lookup` finds. Returns the names of
// the missing functions, each after a space. Missing functions marked as newer
// are not listed.
std::string FindCudaFunctions(PFN_cuGetProcAddress_v12000 lookup,
                              CudaDriver* driver);

// Finds the driver, libcuda.so.1 of the loader's path, and initialises it.
// Functions of driver_functions.def marked as newer may be null in the result.
//
// Errors: std::runtime_error if there is no driver, no device, or one of the
//   other functions is missing; its text is the loader's or the driver's
//   reason.
// Threads: any.
// Cost: milliseconds; makes no context.
CudaDriver LoadCudaDriver();

// The driver's numbers are those of the runtime, so also those of Status. A
// number that Status does not name is kept, so that reports show it.
inline Status ToStatus(CUresult result) { return static_cast<Status>(result); }

}  // namespace strata::cuda

#endif  // STRATA_PLATFORM_CUDA_CUDA_DRIVER_H_
