#ifndef STRATA_PLATFORM_CUDA_CUDA_WORK_ARGUMENTS_H_
#define STRATA_PLATFORM_CUDA_CUDA_WORK_ARGUMENTS_H_

namespace strata {

// What the kernel of CudaWork is launched with, by value; read by the host's
// compiler and by the device's.
struct CudaWorkArguments {
  struct Range {
    unsigned long long ptr;
    unsigned long long words;  // of 8 bytes
    unsigned long long write;  // 0: read
  };
  unsigned long long busy_ns;
  unsigned long long pattern;
  unsigned long long count;  // of ranges
  Range ranges[8];           // kMaxWorkRanges
};

}  // namespace strata

#endif  // STRATA_PLATFORM_CUDA_CUDA_WORK_ARGUMENTS_H_
