#ifndef STRATA_TOOLS_BENCH_WORKLOAD_H_
#define STRATA_TOOLS_BENCH_WORKLOAD_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "strata/tools/bench/script.h"

namespace strata {

// What a workload may depend on.
struct BenchScriptOptions {
  std::size_t pairs = 16384;        // about so many in the loop
  std::uint64_t seed = 1;           // of what is drawn at random
  std::vector<std::string> traces;  // files to replay
};

// What is measured on an allocator.
struct BenchWorkload {
  // Who makes the calls.
  enum class Threads {
    kOne,
    kOwnStreams,  // several, each on a stream of its own
    kOneStream,   // several on one stream
    kHandOver,    // two: one allocates, the other frees
  };

  std::string name;
  std::string summary;
  Threads threads = Threads::kOne;
  std::size_t thread_count = 1;
  // Of the random workloads, what the plots are drawn over; 0: another.
  std::size_t live_blocks = 0;
  // Run when no workload is named: those left out take minutes, or more cores
  // than most machines have.
  bool is_default = true;
  bool is_trace = false;
  // Every thread follows this script. Errors: TraceError, if it is of a trace.
  std::function<BenchScript(const BenchScriptOptions& options)> make;
};

// The usual ones, and one for each trace: `trace:<file name up to the dot>`.
//
// Errors: std::invalid_argument if two traces have the same name.
std::vector<BenchWorkload> BenchWorkloads(const BenchScriptOptions& options);

// One of BenchWorkloads, or one like it with another number at the end of its
// name: `random_50`, `pair_one_stream_3`.
//
// Errors: as BenchWorkloads; std::invalid_argument naming the known workloads.
BenchWorkload FindBenchWorkload(std::string_view name,
                                const BenchScriptOptions& options);

// The files that `list` names, separated by commas; a folder stands for what is
// in it that is not a text on it (*.md), by name.
//
// Errors: std::invalid_argument naming what does not exist.
std::vector<std::string> BenchTraces(std::string_view list);

}  // namespace strata

#endif  // STRATA_TOOLS_BENCH_WORKLOAD_H_
