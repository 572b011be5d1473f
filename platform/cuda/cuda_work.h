#ifndef STRATA_PLATFORM_CUDA_CUDA_WORK_H_
#define STRATA_PLATFORM_CUDA_CUDA_WORK_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "strata/platform/cuda/cuda_device.h"
#include "strata/platform/device_work.h"

namespace strata {

// Work on a GPU: one kernel that waits on the GPU's clock and then touches the
// ranges.
//
// Model: the constructor loads the kernel and runs it once on nothing, as the
//   driver would otherwise load it at the first launch, which waits for other
//   work and is refused during a capture. Reads of one part of a range may come
//   after writes to another; what is read goes nowhere.
// Errors: as DeviceWork; if the kernel could not be loaded, why.
// Lifetime: not longer than the device.
class CudaWork final : public DeviceWork {
 public:
  CudaWork(const CudaDriver& driver, CudaDevice& device);
  ~CudaWork() override;

  Status Enqueue(Stream stream, const WorkRange* ranges, std::size_t count,
                 std::uint64_t busy_ns, std::uint64_t pattern) override;
  // In the order of the stream before compute capability 9.0.
  Status EnqueueEarly(Stream stream, const WorkRange* ranges, std::size_t count,
                      std::uint64_t busy_ns, std::uint64_t pattern) override;

 private:
  Status Load();
  Status WarmUp();
  Status Run(const Stream& stream, const WorkRange* ranges, std::size_t count,
             std::uint64_t busy_ns, std::uint64_t pattern, bool is_early);
  Status Submit(CUstream stream, const WorkRange* ranges, std::size_t count,
                std::uint64_t busy_ns, std::uint64_t pattern, bool is_early);
  CUresult LaunchKernel(CUstream stream, unsigned blocks, void** parameters,
                        bool is_early) const;
  // Whether a GPU like this one launches dependent work early.
  bool CanLaunchEarly() const { return device_.caps().compute_major >= 9; }

  const CudaDriver& driver_;
  CudaDevice& device_;
  CUmodule module_ = nullptr;
  CUfunction kernel_ = nullptr;
  Status loaded_ = Status::kSuccess;  // how Load went
};

}  // namespace strata

#endif  // STRATA_PLATFORM_CUDA_CUDA_WORK_H_
