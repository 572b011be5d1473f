#ifndef STRATA_PLATFORM_CUDA_CUDA_PLATFORM_H_
#define STRATA_PLATFORM_CUDA_CUDA_PLATFORM_H_

#include <memory>
#include <mutex>
#include <vector>

#include "strata/platform/cuda/cuda_device.h"
#include "strata/platform/cuda/cuda_driver.h"
#include "strata/platform/cuda/cuda_work.h"
#include "strata/platform/platform.h"
#include "strata/platform/platform_options.h"

namespace strata::cuda {

// The GPUs that the process sees.
//
// Errors: the constructor throws std::runtime_error if the driver sees none.
// Threads: any thread.
// Lifetime: neither the constructor nor the destructor resets a device.
class CudaPlatform final : public Platform {
 public:
  explicit CudaPlatform(const CudaDriver& driver);
  ~CudaPlatform() override;

  const char* name() const override { return "cuda"; }
  int device_count() const override {
    return static_cast<int>(devices_.size());
  }
  Device& device(int ordinal) override { return cuda_device(ordinal); }
  // The first call for a device creates its context and loads the kernel.
  DeviceWork* work(int ordinal) override;

  // `ordinal` is in [0, device_count()).
  CudaDevice& cuda_device(int ordinal) {
    return *devices_[static_cast<std::size_t>(ordinal)];
  }
  const CudaDriver& driver() const { return driver_; }

 private:
  const CudaDriver driver_;
  std::vector<std::unique_ptr<CudaDevice>> devices_;
  std::mutex mutex_;
  // By ordinal; null until the first work() call. Guarded by mutex_.
  std::vector<std::unique_ptr<CudaWork>> works_;
};

}  // namespace strata::cuda

namespace strata {

// Errors: std::runtime_error with CUDA's reason if there is no driver or no
//   device.
std::shared_ptr<Platform> MakeCudaPlatform(const PlatformOptions& options);

}  // namespace strata

#endif  // STRATA_PLATFORM_CUDA_CUDA_PLATFORM_H_
