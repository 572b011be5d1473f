// The kernel of CudaWork. The build compiles it to PTX and puts the PTX into
// the library as text. So neither the build nor a program that links the
// library needs CUDA's own linker.

#include "strata/platform/cuda/cuda_work_arguments.h"

namespace {

__device__ unsigned long long Now() {
  unsigned long long ns = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}

// Programmatic dependent launch. AllowNext lets the next work of the stream
// start, if it is launched early. AwaitPrevious returns once the previous work
// is complete.
__device__ void AllowNext() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

__device__ void AwaitPrevious() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

}  // namespace

// Reads before it writes, as DeviceWork says.
extern "C" __global__ void strata_work(
    strata::cuda::CudaWorkArguments arguments) {
  AllowNext();
  const unsigned long long start = Now();
  while (Now() - start < arguments.busy_ns) {
  }
  AwaitPrevious();
  const unsigned long long first =
      blockIdx.x * static_cast<unsigned long long>(blockDim.x) + threadIdx.x;
  const unsigned long long step =
      gridDim.x * static_cast<unsigned long long>(blockDim.x);
  for (int pass = 0; pass < 2; ++pass) {
    for (unsigned long long i = 0; i < arguments.count; ++i) {
      const auto& range = arguments.ranges[i];
      auto* words = reinterpret_cast<volatile unsigned long long*>(range.ptr);
      if ((range.write != 0) != (pass == 1)) continue;
      for (unsigned long long word = first; word < range.words; word += step) {
        if (pass == 1) {
          words[word] = arguments.pattern;
        } else {
          static_cast<void>(words[word]);
        }
      }
    }
  }
}
