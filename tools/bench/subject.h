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
#include "strata/tools/bench/workload.h"

namespace strata {

// An allocator at work on a workload.
//
// Threads: one.
class BenchSubject {
 public:
  BenchSubject() = default;
  BenchSubject(const BenchSubject&) = delete;
  BenchSubject& operator=(const BenchSubject&) = delete;
  virtual ~BenchSubject() = default;

  // Every thread of the workload makes `pairs` allocations and as many frees,
  // if that is whole loops of the script or that is uniform, on from where it
  // stopped; returns the time that one took, on average. With
  // one thread and a simulated device that is its processor time, because on a
  // busy machine the clock on the wall mostly measures the others (hotpath.md
  // §9); with several threads or a driver it is time on the wall.
  //
  // Errors: std::bad_alloc if the allocator has no memory left, or
  //   std::runtime_error; then the subject is of no more use.
  virtual std::chrono::nanoseconds Run(std::size_t pairs) = 0;
  // Allocations served so far, as the allocator itself counts; no value if it
  // does not.
  virtual std::optional<std::uint64_t> allocations() = 0;
  // The most held from the system at once; no value if it does not tell.
  virtual std::optional<std::uint64_t> peak_reserved_bytes() = 0;
  // The most asked for at once so far; of several threads, the sum of each
  // one's most.
  virtual std::uint64_t peak_live_bytes() const = 0;
};

enum class BenchClock {
  kThread,  // the processor time of the calling thread
  kWall,
};

// Since a moment that is the clock's own.
std::chrono::nanoseconds TimeOn(BenchClock clock);

// `options` are those of the facade; the strategy is the allocator's. `script`
// is the workload's. `cores` are for threads of the workload's own.
//
// Errors: std::invalid_argument for a wrong option, std::bad_alloc,
//   std::runtime_error, also of a library that is none (HeapLibrary).
std::unique_ptr<BenchSubject> MakeBenchSubject(const BenchAllocator& allocator,
                                               const BenchWorkload& workload,
                                               BenchScript script,
                                               const Options& options,
                                               const std::vector<int>& cores);

}  // namespace strata

#endif  // STRATA_TOOLS_BENCH_SUBJECT_H_
