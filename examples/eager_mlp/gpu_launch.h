#ifndef STRATA_EXAMPLES_EAGER_MLP_GPU_LAUNCH_H_
#define STRATA_EXAMPLES_EAGER_MLP_GPU_LAUNCH_H_

namespace eager_mlp {

// Launches `kernel` in the CUDA stream with this handle, on the current device.
// Returns CUDA's number: 0, or why it was not launched. For the kernels of
// kernels.h.
//
// gpu_launch.cu has it, or, in a build without CUDA, gpu_launch_absent.cc,
// where it is "not supported".
template <class Kernel>
int LaunchOnGpu(const Kernel& kernel, void* stream);

}  // namespace eager_mlp

#endif  // STRATA_EXAMPLES_EAGER_MLP_GPU_LAUNCH_H_
