#ifndef STRATA_PLATFORM_CUDA_CUDA_CONTEXT_H_
#define STRATA_PLATFORM_CUDA_CUDA_CONTEXT_H_

#include <cuda.h>

#include <atomic>
#include <mutex>

#include "strata/platform/cuda/cuda_driver.h"
#include "strata/platform/status.h"

namespace strata {

// The primary context of one device: the one that the runtime uses, so that
// memory, streams and events of its users are valid here.
//
// Model: made at the first use, as a context takes hundreds of MiB of a device
//   that the process may never touch.
// Threads: any.
class CudaContext {
 public:
  CudaContext(const CudaDriver& driver, CUdevice device)
      : driver_(driver), device_(device) {}
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;
  // A driver that is already shutting down has nothing left to release.
  ~CudaContext();

  // The context, or why there is none.
  Status Get(CUcontext* context);

  const CudaDriver& driver() const { return driver_; }

 private:
  const CudaDriver& driver_;
  const CUdevice device_;
  std::mutex mutex_;  // held while the driver makes the context: others wait
  std::atomic<CUcontext> context_{nullptr};  // null: not made yet
};

// While one lives, the context is the calling thread's current one; afterwards
// what was current before, if only "none", is so again.
//
// Cost: one driver call that reads a thread-local variable if the context was
//   current already, else three such calls.
class CudaContextScope {
 public:
  explicit CudaContextScope(CudaContext& context);
  CudaContextScope(const CudaContextScope&) = delete;
  CudaContextScope& operator=(const CudaContextScope&) = delete;
  ~CudaContextScope();

  // Whether the context is current.
  Status status() const { return status_; }

 private:
  const CudaDriver& driver_;
  Status status_ = Status::kSuccess;
  bool pushed_ = false;
};

}  // namespace strata

#endif  // STRATA_PLATFORM_CUDA_CUDA_CONTEXT_H_
