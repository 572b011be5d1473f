#ifndef STRATA_ALLOCATION_ALLOCATION_LOG_H_
#define STRATA_ALLOCATION_ALLOCATION_LOG_H_

#include <cstdint>
#include <mutex>
#include <string>

#include "strata/allocation/allocation.h"
#include "strata/platform/recording_file.h"

namespace strata {

class Allocator;

// A file that says what memory was allocated for: which step, which operation,
// which tensor.
//
// Model: one JSON object per line. Key `event` is one of
//     step                 `handle`
//     tensor_allocation    all keys below, `dtype` and `shape`
//     raw_allocation       all keys below
//     tensor_deallocation, raw_deallocation   all but the sizes
//   and every line has `step_id` and `op`, the calling thread's (annotation.h).
//   Further keys: `allocator` (the layer that carves the memory), `place`,
//   `bytes` (as rounded), `requested_bytes`, `address`, and `allocation_id`,
//   the log's own number of the allocation: from 1, never used again. A
//   deallocation has the number of its allocation.
// Threads: any thread. A deallocation is recorded before the memory is free, so
//   an address is not allocated again before its line.
// Cost: a formatted line under the log's lock; no heap call.
// Source: tf_bfc.md §2 (LogMemory).
class AllocationLog {
 public:
  // Creates or truncates the file.
  //
  // Errors: as RecordingFile.
  explicit AllocationLog(const std::string& path);

  // The calling thread begins a step; `handle` names what runs, for people.
  void RecordStep(const char* handle) noexcept;

  // Both return the allocation_id. `allocator` is any layer of the chain.
  std::uint64_t RecordTensorAllocation(const Allocation& allocation,
                                       const Allocator& allocator,
                                       const char* dtype,
                                       const char* shape) noexcept;
  std::uint64_t RecordRawAllocation(const Allocation& allocation,
                                    const Allocator& allocator) noexcept;
  void RecordTensorDeallocation(std::uint64_t allocation_id,
                                const Allocation& allocation,
                                const Allocator& allocator) noexcept;
  void RecordRawDeallocation(std::uint64_t allocation_id,
                             const Allocation& allocation,
                             const Allocator& allocator) noexcept;

 private:
  // Hold mutex_.
  void Begin(const char* event);
  void End();
  void Text(const char* key, const char* value);
  void Number(const char* key, std::uint64_t value);
  void Memory(const Allocation& allocation, const Allocator& allocator,
              std::uint64_t allocation_id);

  void Deallocation(const char* event, std::uint64_t allocation_id,
                    const Allocation& allocation,
                    const Allocator& allocator) noexcept;

  std::mutex mutex_;
  RecordingFile file_;         // guarded by mutex_
  std::uint64_t last_id_ = 0;  // guarded by mutex_
};

// The name of the layer of a chain that carves memory into what it returns: the
// strategy, or the bottom of a chain without one.
const char* CarvingLayer(const Allocator& chain);

}  // namespace strata

#endif  // STRATA_ALLOCATION_ALLOCATION_LOG_H_
