#include "strata/platform/cuda/cuda_context.h"

namespace strata::cuda {

CudaContext::~CudaContext() {
  if (context_.load(std::memory_order_acquire) != nullptr) {
    driver_.DevicePrimaryCtxRelease(device_);
  }
}

Status CudaContext::Get(CUcontext* context) {
  *context = context_.load(std::memory_order_acquire);
  if (*context != nullptr) return Status::kSuccess;
  std::lock_guard lock(mutex_);
  *context = context_.load(std::memory_order_relaxed);
  if (*context != nullptr) return Status::kSuccess;
  CUcontext made = nullptr;
  const CUresult result = driver_.DevicePrimaryCtxRetain(&made, device_);
  if (result != CUDA_SUCCESS) return ToStatus(result);
  context_.store(made, std::memory_order_release);
  *context = made;
  return Status::kSuccess;
}

CudaContextScope::CudaContextScope(CudaContext& context)
    : driver_(context.driver()) {
  CUcontext wanted = nullptr;
  status_ = context.Get(&wanted);
  if (status_ != Status::kSuccess) return;
  CUcontext current = nullptr;
  driver_.CtxGetCurrent(&current);
  if (current == wanted) return;
  status_ = ToStatus(driver_.CtxPushCurrent(wanted));
  pushed_ = status_ == Status::kSuccess;
}

CudaContextScope::~CudaContextScope() {
  CUcontext popped = nullptr;
  if (pushed_) driver_.CtxPopCurrent(&popped);
}

}  // namespace strata::cuda
