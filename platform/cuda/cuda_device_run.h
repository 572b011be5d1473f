#ifndef STRATA_PLATFORM_CUDA_CUDA_DEVICE_RUN_H_
#define STRATA_PLATFORM_CUDA_CUDA_DEVICE_RUN_H_

#include "strata/platform/cuda/cuda_device.h"

namespace strata::cuda {

// For the sources of CudaDevice only. The observers run after the current
// device of the caller is restored.
template <class Body>
Status CudaDevice::Run(CallRecord call, Body body) {
  Enter(call.call);
  {
    CudaContextScope scope(context_);
    call.status = scope.status();
    if (call.status == Status::kSuccess) call.status = body(&call);
  }
  Observe(call);
  return call.status;
}

template <class Body>
Status CudaDevice::RunOn(const Stream& stream, CallRecord call, Body body) {
  call.stream_uid = stream.uid;
  return Run(call, [&](CallRecord* seen) {
    const Status status = CheckStream(stream);
    return status == Status::kSuccess ? body(seen) : status;
  });
}

}  // namespace strata::cuda

#endif  // STRATA_PLATFORM_CUDA_CUDA_DEVICE_RUN_H_
