#ifndef STRATA_PLATFORM_SIMDRIVER_CONTEXT_H_
#define STRATA_PLATFORM_SIMDRIVER_CONTEXT_H_

#include <cuda.h>

#include <atomic>
#include <cstdint>

#include "strata/platform/sim/device/sim_device.h"
#include "strata/platform/simdriver/entries.h"
#include "strata/platform/simdriver/process.h"

namespace strata::simdriver {

// The primary context of a device: the only one that the stand-in has.
//
// Model: the first retain creates the context, and the last release ends it.
//   Unlike on a GPU, memory, streams and events of the device then remain.
//   Calls are refused while the current context is an ended one.
// Threads: any.
struct Context {
  std::atomic<int> retained{0};
  std::atomic<unsigned> flags{0};
};

// The primary context of device `ordinal`, which exists.
Context* PrimaryContext(int ordinal);
// The device of a primary context.
int OrdinalOf(const Context& context);
// The context with this handle; null if there is none.
Context* FindContext(CUcontext handle);
inline CUcontext HandleOf(Context* context) {
  return reinterpret_cast<CUcontext>(context);
}

// The calling thread's current context, or null.
Context* CurrentContext();

// CUDA_SUCCESS and the device of the current context, or why there is none:
// 3 before cuInit and in a forked child, 201 without a context, 709 if it
// ended.
CUresult CurrentDevice(SimDevice** device);

// Runs `body(SimDevice&)`, which returns a Status, on the current device.
template <class Body>
CUresult OnCurrentDevice(Body body) {
  SimDevice* device = nullptr;
  const CUresult result = CurrentDevice(&device);
  return result == CUDA_SUCCESS ? ToResult(body(*device)) : result;
}

// Runs `body(SimDevice&)` on the device of the current context, or on device 0
// if there is none: for state that all devices share.
template <class Body>
CUresult OnAnyDevice(Body body) {
  const CUresult result = Ready();
  if (result != CUDA_SUCCESS) return result;
  const Context* const context = CurrentContext();
  return ToResult(body(FindProcess()->platform.sim_device(
      context != nullptr ? OrdinalOf(*context) : 0)));
}

// The stream that `handle` names, and its device. The null handle and the two
// explicit ones are streams of the current device.
//
// Errors: as CurrentDevice; CUDA_ERROR_INVALID_HANDLE if there is no such
//   stream.
CUresult FindStream(NullStream null, CUstream handle, SimDevice** device,
                    Stream* stream);

// Runs `body(SimDevice&, const Stream&)`, which returns a Status.
template <class Body>
CUresult OnStream(NullStream null, CUstream handle, Body body) {
  SimDevice* device = nullptr;
  Stream stream;
  const CUresult result = FindStream(null, handle, &device, &stream);
  return result == CUDA_SUCCESS ? ToResult(body(*device, stream)) : result;
}

// CUDA_SUCCESS if `device` is the number of a device.
CUresult CheckOrdinal(CUdevice device);

}  // namespace strata::simdriver

#endif  // STRATA_PLATFORM_SIMDRIVER_CONTEXT_H_
