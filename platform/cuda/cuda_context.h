#ifndef STRATA_PLATFORM_CUDA_CUDA_CONTEXT_H_
#define STRATA_PLATFORM_CUDA_CUDA_CONTEXT_H_

#include <cuda.h>

#include <atomic>
#include <mutex>

#include "strata/platform/cuda/cuda_driver.h"
#include "strata/platform/status.h"

namespace strata::cuda {

// The primary context of one device: the context that the runtime uses, so that
// memory, streams and events of the runtime's users are valid here.
//
// Model: created at the first use, because a context takes hundreds of MiB of
//   the device, and the process may never use the device.
// Threads: any thread.
class CudaContext {
 public:
  CudaContext(const CudaDriver& driver, CUdevice device)
      : driver_(driver), device_(device) {}
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;
  // Releases nothing if the driver is already shutting down.
  ~CudaContext();

  // Returns the context, or the reason why there is none.
  Status Get(CUcontext* context);

  const CudaDriver& driver() const { return driver_; }

 private:
  const CudaDriver& driver_;
  const CUdevice device_;
  // Held while the driver creates the context; other threads wait.
  std::mutex mutex_;
  std::atomic<CUcontext> context_{nullptr};  // null: not created yet
};

// Makes the context the calling thread's current one for the life of this
// object. The destructor restores the previous context, also if there was none.
//
// Cost: if the context is already current, one driver call that reads a
//   thread-local variable; else three such calls.
class CudaContextScope {
 public:
  explicit CudaContextScope(CudaContext& context);
  CudaContextScope(const CudaContextScope&) = delete;
  CudaContextScope& operator=(const CudaContextScope&) = delete;
  ~CudaContextScope();

  // kSuccess if the context is current, else the reason.
  Status status() const { return status_; }

 private:
  const CudaDriver& driver_;
  Status status_ = Status::kSuccess;
  bool pushed_ = false;
};

}  // namespace strata::cuda

#endif  // STRATA_PLATFORM_CUDA_CUDA_CONTEXT_H_
