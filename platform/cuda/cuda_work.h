#ifndef STRATA_PLATFORM_CUDA_CUDA_WORK_H_
#define STRATA_PLATFORM_CUDA_CUDA_WORK_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>

#include "strata/platform/cuda/cuda_device.h"
#include "strata/platform/device_work.h"

namespace strata::cuda {

// Work on a GPU: one kernel that waits on the GPU's clock and then accesses the
// ranges.
//
// Model: the constructor loads the kernel and runs it once without ranges.
//   Otherwise the driver would load it at the first launch, which waits for
//   other work and is refused during a capture. Reads of one part of a range
//   may run after writes to another part. The values read are discarded.
// Errors: as DeviceWork. If the kernel could not be loaded, every call returns
//   that error.
// Lifetime: the device outlives it.
class CudaWork final : public DeviceWork {
 public:
  CudaWork(const CudaDriver& driver, CudaDevice& device);
  ~CudaWork() override;

  Status Enqueue(Stream stream, const WorkRange* ranges, std::size_t count,
                 std::uint64_t busy_ns, std::uint64_t pattern) override;
  // Runs in stream order before compute capability 9.0.
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
  // True if this GPU can launch dependent work early.
  bool CanLaunchEarly() const { return device_.caps().compute_major >= 9; }

  const CudaDriver& driver_;
  CudaDevice& device_;
  CUmodule module_ = nullptr;
  CUfunction kernel_ = nullptr;
  Status loaded_ = Status::kSuccess;  // result of Load
};

}  // namespace strata::cuda

#endif  // STRATA_PLATFORM_CUDA_CUDA_WORK_H_
