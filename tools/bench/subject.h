#ifndef STRATA_TOOLS_BENCH_SUBJECT_H_
#define STRATA_TOOLS_BENCH_SUBJECT_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "strata/facade/options.h"
#include "strata/tools/bench/allocator.h"
#include "strata/tools/bench/workloads/workload.h"

namespace strata::tools {

// An allocator that runs a workload.
//
// Threads: one.
class BenchSubject {
 public:
  BenchSubject() = default;
  BenchSubject(const BenchSubject&) = delete;
  BenchSubject& operator=(const BenchSubject&) = delete;
  virtual ~BenchSubject() = default;

  // Every thread of the workload makes `pairs` allocations and as many frees,
  // and continues where it stopped. Exact if `pairs` is whole loops of the
  // script, or the script is uniform. Returns the average time of a thread.
  // With one thread and a simulated device it is processor time, because wall
  // time on a busy machine mostly measures other processes (hotpath.md §9).
  // With several threads or a driver it is wall time.
  //
  // Errors: std::bad_alloc if the allocator has no memory left, or
  //   std::runtime_error; then the subject is unusable.
  virtual std::chrono::nanoseconds Run(std::size_t pairs) = 0;
  // Allocations served so far, by the allocator's own count; no value if it has
  // none.
  virtual std::optional<std::uint64_t> allocations() = 0;
  // The peak of the memory held from the system; no value if the allocator does
  // not report it.
  virtual std::optional<std::uint64_t> peak_reserved_bytes() = 0;
  // The peak of the requested bytes so far; with several threads, the sum of
  // their peaks.
  virtual std::uint64_t peak_live_bytes() const = 0;
};

enum class BenchClock {
  kThread,  // the processor time of the calling thread
  kWall,
};

// Time since an epoch of the clock.
std::chrono::nanoseconds TimeOn(BenchClock clock);

// `options` are those of the facade, with the allocator's strategy. `script` is
// the workload's. `cores` are for the workload's threads.
//
// Errors: std::invalid_argument for a wrong option, std::bad_alloc,
//   std::runtime_error, also for a file that is not a library (HeapLibrary).
std::unique_ptr<BenchSubject> MakeBenchSubject(const BenchAllocator& allocator,
                                               const BenchWorkload& workload,
                                               BenchScript script,
                                               const Options& options,
                                               const std::vector<int>& cores);

}  // namespace strata::tools

#endif  // STRATA_TOOLS_BENCH_SUBJECT_H_
