#include "strata/examples/eager_mlp/gpu_launch.h"
#include "strata/examples/eager_mlp/kernels.h"
#include "strata/platform/status.h"

namespace eager_mlp {

template <class Kernel>
int LaunchOnGpu(const Kernel& /*kernel*/, void* /*stream*/) {
  return static_cast<int>(strata::Status::kNotSupported);
}

#define STRATA_MLP_INSTANTIATE(kernel) \
  template int LaunchOnGpu(const kernel&, void*);
STRATA_MLP_KERNELS(STRATA_MLP_INSTANTIATE)
#undef STRATA_MLP_INSTANTIATE

}  // namespace eager_mlp
