#ifndef STRATA_TOOLS_BENCH_WORKLOADS_WORKLOAD_H_
#define STRATA_TOOLS_BENCH_WORKLOADS_WORKLOAD_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "strata/tools/bench/workloads/script.h"

namespace strata::tools {

// Options of the scripts.
struct BenchScriptOptions {
  std::size_t pairs = 16384;        // approximate pairs per loop
  std::uint64_t seed = 1;           // seed of the random numbers
  std::vector<std::string> traces;  // files to replay
};

// A workload for an allocator.
struct BenchWorkload {
  // The threads that make the calls.
  enum class Threads {
    kOne,
    kOwnStreams,  // several, each on its own stream
    kOneStream,   // several on one stream
    kHandOver,    // two: one allocates, the other frees
  };

  std::string name;
  std::string summary;
  Threads threads = Threads::kOne;
  std::size_t thread_count = 1;
  // Live blocks of the random workloads: the x axis of the plots; 0: another
  // workload.
  std::size_t live_blocks = 0;
  // Run when no workload is named. The others take minutes, or more cores than
  // most machines have.
  bool is_default = true;
  bool is_trace = false;
  // The script of every thread. Errors: TraceError, for a trace.
  std::function<BenchScript(const BenchScriptOptions& options)> make;
};

// The usual workloads, and one per trace: `trace:<file name up to the dot>`.
//
// Errors: std::invalid_argument if two traces have the same name.
std::vector<BenchWorkload> BenchWorkloads(const BenchScriptOptions& options);

// One of BenchWorkloads, or one of the same family with another number at the
// end of its name: `random_50`, `pair_one_stream_3`.
//
// Errors: as BenchWorkloads; std::invalid_argument naming the known workloads.
BenchWorkload FindBenchWorkload(std::string_view name,
                                const BenchScriptOptions& options);

// The files that `list` names, separated by commas. A folder stands for its
// files, sorted by name, except texts (*.md).
//
// Errors: std::invalid_argument naming a file that does not exist.
std::vector<std::string> BenchTraces(std::string_view list);

}  // namespace strata::tools

#endif  // STRATA_TOOLS_BENCH_WORKLOADS_WORKLOAD_H_
