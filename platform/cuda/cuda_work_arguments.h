#ifndef STRATA_PLATFORM_CUDA_CUDA_WORK_ARGUMENTS_H_
#define STRATA_PLATFORM_CUDA_CUDA_WORK_ARGUMENTS_H_

#include <cstdint>

namespace strata::cuda {

// The arguments of CudaWork's kernel, passed by value. The host's compiler and
// the device's compiler both read this file.
struct CudaWorkArguments {
  struct Range {
    std::uint64_t ptr;
    std::uint64_t words;  // of 8 bytes
    std::uint64_t write;  // 0: read
  };
  std::uint64_t busy_ns;
  std::uint64_t pattern;
  std::uint64_t count;  // of ranges
  Range ranges[8];      // kMaxWorkRanges
};

}  // namespace strata::cuda

#endif  // STRATA_PLATFORM_CUDA_CUDA_WORK_ARGUMENTS_H_
