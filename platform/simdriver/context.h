#ifndef STRATA_PLATFORM_SIMDRIVER_CONTEXT_H_
#define STRATA_PLATFORM_SIMDRIVER_CONTEXT_H_

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <functional>

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

// Runs `body(SimDevice&, arguments...)`, which returns a Status, on the current
// device. `body` may be a member of SimDevice.
template <class Body, class... Arguments>
CUresult OnCurrentDevice(Body body, const Arguments&... arguments) {
  SimDevice* device = nullptr;
  const CUresult result = CurrentDevice(&device);
  if (result != CUDA_SUCCESS) return result;
  return ToResult(std::invoke(body, *device, arguments...));
}

// Like OnCurrentDevice, on the device of the current context, or on device 0 if
// there is none: for state that all devices share.
template <class Body, class... Arguments>
CUresult OnAnyDevice(Body body, const Arguments&... arguments) {
  const CUresult result = Ready();
  if (result != CUDA_SUCCESS) return result;
  const Context* const context = CurrentContext();
  SimDevice& device = FindProcess()->platform.sim_device(
      context != nullptr ? OrdinalOf(*context) : 0);
  return ToResult(std::invoke(body, device, arguments...));
}

// Calls `device.make(Made*, arguments...)`, which makes an address or a handle,
// and writes it to `*out`. kInvalidValue if `out` is null.
template <class Out, class Made, class... Types, class... Arguments>
Status PutMade(Out* out, SimDevice& device,
               Status (SimDevice::*make)(Made*, Types...),
               const Arguments&... arguments) {
  if (out == nullptr) return Status::kInvalidValue;
  Made made{};
  const Status status = (device.*make)(&made, arguments...);
  if (status != Status::kSuccess) return status;
  if constexpr (requires { made.value; }) {
    *out = static_cast<Out>(made.value);
  } else {
    *out = made;
  }
  return status;
}

// Writes `value()` to `*out` if `checked` is CUDA_SUCCESS and `out` is not
// null.
template <class Out, class Value>
CUresult PutIf(CUresult checked, Out* out, Value value) {
  if (checked != CUDA_SUCCESS) return checked;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = value();
  return CUDA_SUCCESS;
}

// The stream that `handle` names, and its device. The null handle and the two
// explicit ones are streams of the current device.
//
// Errors: as CurrentDevice; CUDA_ERROR_INVALID_HANDLE if there is no such
//   stream.
CUresult FindStream(NullStream null, CUstream handle, SimDevice** device,
                    Stream* stream);

// Runs `body(SimDevice&, const Stream&, arguments...)`, which returns a Status.
// `body` may be a member of SimDevice.
template <class Body, class... Arguments>
CUresult OnStream(NullStream null, CUstream handle, Body body,
                  const Arguments&... arguments) {
  SimDevice* device = nullptr;
  Stream stream;
  const CUresult result = FindStream(null, handle, &device, &stream);
  if (result != CUDA_SUCCESS) return result;
  return ToResult(std::invoke(body, *device, stream, arguments...));
}

// CUDA_SUCCESS if `device` is the number of a device.
CUresult CheckOrdinal(CUdevice device);

// Runs `body(SimDevice&)`, which returns a CUresult, if device `ordinal` exists
// and `out`, the address for the result, is not null.
template <class Body>
CUresult OfDevice(CUdevice ordinal, const void* out, Body body) {
  const CUresult result = CheckOrdinal(ordinal);
  if (result != CUDA_SUCCESS) return result;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return body(FindProcess()->platform.sim_device(ordinal));
}

}  // namespace strata::simdriver

#endif  // STRATA_PLATFORM_SIMDRIVER_CONTEXT_H_
