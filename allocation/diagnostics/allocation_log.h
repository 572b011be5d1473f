#ifndef STRATA_ALLOCATION_DIAGNOSTICS_ALLOCATION_LOG_H_
#define STRATA_ALLOCATION_DIAGNOSTICS_ALLOCATION_LOG_H_

#include <cstdint>
#include <mutex>
#include <string>

#include "strata/allocation/allocation.h"
#include "strata/base/recording_file.h"

namespace strata {

class Allocator;

// A file that records the purpose of allocations: step, operation and tensor.
//
// Model: one JSON object per line. Key `event` is one of
//     step                 `handle`
//     tensor_allocation    all keys below, `dtype` and `shape`
//     raw_allocation       all keys below
//     tensor_deallocation, raw_deallocation   all but the sizes
//   Every line has `step_id` and `op`, those of the calling thread
//   (annotation.h). Further keys: `allocator` (the layer that splits chunks),
//   `place`, `bytes` (rounded), `requested_bytes`, `address`, and
//   `allocation_id`. The log numbers the allocations from 1 and never uses a
//   number again. A deallocation has the number of its allocation.
// Threads: any thread. A deallocation is recorded before the memory is free. So
//   an address is not allocated again before its line.
// Cost: a formatted line under the lock of the log; no heap call.
// Source: tf_bfc.md §2 (LogMemory).
class AllocationLog {
 public:
  // Creates or truncates the file.
  //
  // Errors: as RecordingFile.
  explicit AllocationLog(const std::string& path);

  // Records that the calling thread begins a step. `handle` is a readable name
  // of the step.
  void RecordStep(const char* handle) noexcept;

  // Record an allocation and return its allocation_id. `allocator` is any layer
  // of the chain.
  std::uint64_t RecordTensorAllocation(const Allocation& allocation,
                                       const Allocator& allocator,
                                       const char* dtype,
                                       const char* shape) noexcept {
    return Allocated("tensor_allocation", allocation, allocator, dtype, shape);
  }
  std::uint64_t RecordRawAllocation(const Allocation& allocation,
                                    const Allocator& allocator) noexcept {
    return Allocated("raw_allocation", allocation, allocator, nullptr, nullptr);
  }
  void RecordTensorDeallocation(std::uint64_t allocation_id,
                                const Allocation& allocation,
                                const Allocator& allocator) noexcept {
    Deallocated("tensor_deallocation", allocation_id, allocation, allocator);
  }
  void RecordRawDeallocation(std::uint64_t allocation_id,
                             const Allocation& allocation,
                             const Allocator& allocator) noexcept {
    Deallocated("raw_deallocation", allocation_id, allocation, allocator);
  }

 private:
  // The functions below need mutex_.
  void Begin(const char* event);
  void End();
  void Text(const char* key, const char* value);
  void Number(const char* key, std::uint64_t value);
  void Memory(const Allocation& allocation, const Allocator& allocator,
              std::uint64_t allocation_id);

  // `dtype` and `shape` may be null.
  std::uint64_t Allocated(const char* event, const Allocation& allocation,
                          const Allocator& allocator, const char* dtype,
                          const char* shape) noexcept;
  void Deallocated(const char* event, std::uint64_t allocation_id,
                   const Allocation& allocation,
                   const Allocator& allocator) noexcept;

  std::mutex mutex_;
  RecordingFile file_;         // guarded by mutex_
  std::uint64_t last_id_ = 0;  // guarded by mutex_
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_DIAGNOSTICS_ALLOCATION_LOG_H_
