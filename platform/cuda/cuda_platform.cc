#include "strata/platform/cuda/cuda_platform.h"

#include <stdexcept>

namespace strata::cuda {

CudaPlatform::CudaPlatform(const CudaDriver& driver) : driver_(driver) {
  int count = 0;
  const CUresult result = driver_.DeviceGetCount(&count);
  if (result != CUDA_SUCCESS || count == 0) {
    throw std::runtime_error("the driver sees no device: " +
                             ToString(ToStatus(result)));
  }
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    CUdevice device = 0;
    const CUresult found = driver_.DeviceGet(&device, ordinal);
    if (found != CUDA_SUCCESS) {
      throw std::runtime_error("device " + std::to_string(ordinal) + ": " +
                               ToString(ToStatus(found)));
    }
    devices_.push_back(std::make_unique<CudaDevice>(this, ordinal, device));
  }
  works_.resize(devices_.size());
}

CudaPlatform::~CudaPlatform() = default;

DeviceWork* CudaPlatform::work(int ordinal) {
  std::lock_guard lock(mutex_);
  std::unique_ptr<CudaWork>& work = works_[static_cast<std::size_t>(ordinal)];
  if (work == nullptr) {
    work = std::make_unique<CudaWork>(driver_, cuda_device(ordinal));
  }
  return work.get();
}

}  // namespace strata::cuda

namespace strata {

std::shared_ptr<Platform> MakeCudaPlatform(const PlatformOptions&) {
  return std::make_shared<cuda::CudaPlatform>(cuda::LoadCudaDriver());
}

}  // namespace strata
