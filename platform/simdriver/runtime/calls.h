#ifndef STRATA_PLATFORM_SIMDRIVER_RUNTIME_CALLS_H_
#define STRATA_PLATFORM_SIMDRIVER_RUNTIME_CALLS_H_

#include <cuda.h>

#include <type_traits>

#include "strata/platform/simdriver/runtime/entries.h"

namespace strata::simdriver::runtime {

// The driver and the runtime use the same numbers for errors.
inline cudaError_t ToError(CUresult result) {
  return static_cast<cudaError_t>(result);
}
inline cudaError_t ToError(cudaError_t error) { return error; }

// Returns `error`. An error becomes the last one of the calling thread.
cudaError_t Note(cudaError_t error);

// Calls cuInit. Returns 3 in a forked child, and 100 without a device.
CUresult StartDriver();

// Makes a context current unless the calling thread has one: the primary
// context of the device that the thread chose.
CUresult NeedContext();

// The device of the calling thread's current context. Without a context: the
// device that the thread chose, or 0. Creates no context.
int ThreadDevice();
// Chooses `device` for the calling thread and makes its primary context
// current.
CUresult ChooseThreadDevice(int device);

// Retains the primary context of `device` unless the runtime has done so.
CUresult RetainPrimary(int device, CUcontext* context);
// Releases it if the runtime retains it.
CUresult ReleasePrimary(int device);

// Runs `body()`, which returns a CUresult or a cudaError_t, once the driver is
// started, and notes the result.
template <class Body>
cudaError_t WithDriver(Body body) {
  const CUresult result = StartDriver();
  return Note(result == CUDA_SUCCESS ? ToError(body()) : ToError(result));
}

// Like WithDriver, with a current context.
template <class Body>
cudaError_t WithContext(Body body) {
  const CUresult result = NeedContext();
  return Note(result == CUDA_SUCCESS ? ToError(body()) : ToError(result));
}

// Runs `body(CUdeviceptr*)` and writes the address that it made to `*ptr`.
template <class Body>
CUresult Make(void** ptr, Body body) {
  if (ptr == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUdeviceptr made = 0;
  const CUresult result = body(&made);
  if (result == CUDA_SUCCESS) *ptr = reinterpret_cast<void*>(made);
  return result;
}

// Writes `value` to `*out` unless that is null.
template <class Out>
CUresult Put(Out* out, std::type_identity_t<Out> value) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = value;
  return CUDA_SUCCESS;
}

inline CUdeviceptr ToPtr(const void* ptr) {
  return reinterpret_cast<CUdeviceptr>(ptr);
}

}  // namespace strata::simdriver::runtime

#endif  // STRATA_PLATFORM_SIMDRIVER_RUNTIME_CALLS_H_
