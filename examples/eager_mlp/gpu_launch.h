#ifndef STRATA_EXAMPLES_EAGER_MLP_GPU_LAUNCH_H_
#define STRATA_EXAMPLES_EAGER_MLP_GPU_LAUNCH_H_

namespace eager_mlp {

// Launches `kernel`, one of kernels.h, in the CUDA stream with this handle on
// the current device. Returns the CUDA error code; 0 on success.
//
// Defined in gpu_launch.cu. A build without CUDA uses gpu_launch_absent.cc,
// which returns "not supported".
template <class Kernel>
int LaunchOnGpu(const Kernel& kernel, void* stream);

}  // namespace eager_mlp

#endif  // STRATA_EXAMPLES_EAGER_MLP_GPU_LAUNCH_H_
