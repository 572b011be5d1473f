#ifndef STRATA_PLATFORM_CUDA_CUDA_DEVICE_H_
#define STRATA_PLATFORM_CUDA_CUDA_DEVICE_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "strata/platform/calls/call_frame.h"
#include "strata/platform/calls/call_record.h"
#include "strata/platform/cuda/cuda_context.h"
#include "strata/platform/cuda/cuda_driver.h"
#include "strata/platform/device.h"

namespace strata::cuda {

class CudaPlatform;

// A GPU, through its driver.
//
// Model: works in the device's primary context, the one that the runtime uses.
//   Leaves the current device and last error of the calling thread as they were
//   (cuda_context.h, cuda_driver.h). Handles are CUDA's own, so streams and
//   events of the runtime can be passed in. The null handle always means the
//   legacy stream here, however the caller was compiled (cuda_semantics.md S5).
//   A Stream carries one of the two explicit handles instead. Where the runtime
//   and the driver differ (no bytes, a null address), calls behave as the
//   runtime.
// Errors: kInvalidResourceHandle for a Stream of another device, for a
//   per-thread Stream of another thread, and for a null event. The handle of
//   such a Stream would name a stream of this device or thread. Other destroyed
//   handles are undefined behaviour, as in CUDA. A Status may be a number that
//   Status does not name. After cudaDeviceReset every call fails.
// Threads: any thread. A call made with a Strata lock held aborts the process.
// Cost: as the driver's, plus some tens of nanoseconds. The first call that
//   needs the context creates it: hundreds of milliseconds.
// Source: cuda_semantics.md §1-4; CUDA 13.0 cuda.h.
class CudaDevice final : public Device {
 public:
  CudaDevice(CudaPlatform* platform, int ordinal, CUdevice device);

  int ordinal() const override { return ordinal_; }
  // Shared by every CudaPlatform of the process. No address is that low.
  std::uintptr_t identity() const override {
    return static_cast<std::uintptr_t>(ordinal_) + 1;
  }
  const Caps& caps() const override { return caps_; }

  Stream LegacyStream() override;
  Stream PerThreadStream() override;
#define STRATA_DEVICE_CALL(method, name, parameters, arguments, operands) \
  Status method parameters override;
#include "strata/platform/calls/device_calls.def"
#undef STRATA_DEVICE_CALL

  // For CudaWork. Returns kSuccess, or kInvalidResourceHandle if the handle
  // does not name this stream in this thread.
  Status CheckStream(const Stream& stream) const;
  CudaContext& context() { return context_; }

 private:
  using Call = CallRecord;

  // The effects of the entry points (call_frame.h).
#define STRATA_DEVICE_CALL(method, name, parameters, arguments, operands) \
  Status Do##method STRATA_EFFECT_PARAMETERS parameters;
#include "strata/platform/calls/device_calls.def"
#undef STRATA_DEVICE_CALL

  // The frame of every entry point: counts the call, checks `stream` if it is
  // not null, runs `effect(Call*)` with the context current, and reports to the
  // observers.
  template <class Effect>
  Status Run(DeviceCall name, Call call, const Stream* stream, Effect effect);
  // True if the device and its driver have `call`.
  bool Supports(DeviceCall call) const;
  void Enter(DeviceCall call);
  Caps ReadCaps() const;
  // Returns 0 if the driver does not report the attribute.
  int ValueOf(CUdevice_attribute attribute) const;
  bool Has(CUdevice_attribute attribute) const {
    return ValueOf(attribute) != 0;
  }
  // The calling thread's uid for its per-thread stream.
  std::uint64_t PerThreadUid() const;

  CudaPlatform* const platform_;
  const CudaDriver& driver_;
  const int ordinal_;
  const CUdevice device_;
  const std::uint64_t instance_;  // unique for the life of the process
  const Caps caps_;
  CudaContext context_;
};

}  // namespace strata::cuda

#endif  // STRATA_PLATFORM_CUDA_CUDA_DEVICE_H_
