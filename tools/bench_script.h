#ifndef STRATA_TOOLS_BENCH_SCRIPT_H_
#define STRATA_TOOLS_BENCH_SCRIPT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace strata {

// One call: allocate `bytes` into the free slot `slot`, or, if `bytes` is 0,
// free what the slot holds.
struct BenchStep {
  std::uint64_t bytes = 0;
  std::uint32_t slot = 0;
};

// The calls of a workload, decided before anything is measured.
//
// Model: `prologue` is run once and not measured. `loop` is run any number of
//   times: it leaves the same slots filled that it found filled, from the first
//   time on with blocks of the same sizes.
struct BenchScript {
  std::vector<BenchStep> prologue;
  std::vector<BenchStep> loop;
  std::size_t slots = 0;
  std::uint64_t peak_live_bytes = 0;  // the most asked for at once

  // Allocations in the loop, each with its free.
  std::size_t pairs() const { return loop.size() / 2; }
};

// What a workload may depend on.
struct BenchScriptOptions {
  std::size_t pairs = 16384;  // about so many in the loop
  std::string trace;          // file for workloads that replay one
};

// One row of the table of workloads.
struct BenchWorkload {
  const char* name;
  const char* summary;
  bool needs_trace;
  // Errors: TraceError, if it needs a trace.
  BenchScript (*make)(const BenchScriptOptions& options);
};

const std::vector<BenchWorkload>& BenchWorkloads();

// Errors: std::invalid_argument naming the known workloads.
const BenchWorkload& FindBenchWorkload(std::string_view name);

}  // namespace strata

#endif  // STRATA_TOOLS_BENCH_SCRIPT_H_
