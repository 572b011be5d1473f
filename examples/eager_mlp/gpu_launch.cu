#include "strata/examples/eager_mlp/gpu_launch.h"
#include "strata/examples/eager_mlp/kernels.h"

namespace eager_mlp {
namespace {

constexpr int kThreadsPerBlock = 128;

template <class Kernel>
__global__ void Run(Kernel kernel) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < kernel.size()) kernel(i);
}

}  // namespace

template <class Kernel>
int LaunchOnGpu(const Kernel& kernel, void* stream) {
  const int blocks = (kernel.size() + kThreadsPerBlock - 1) / kThreadsPerBlock;
  Kernel argument = kernel;
  void* arguments[] = {&argument};
  return cudaLaunchKernel(reinterpret_cast<const void*>(&Run<Kernel>),
                          dim3(static_cast<unsigned>(blocks)),
                          dim3(kThreadsPerBlock), arguments, 0,
                          static_cast<cudaStream_t>(stream));
}

#define STRATA_MLP_INSTANTIATE(kernel) \
  template int LaunchOnGpu(const kernel&, void*);
STRATA_MLP_KERNELS(STRATA_MLP_INSTANTIATE)
#undef STRATA_MLP_INSTANTIATE

}  // namespace eager_mlp
