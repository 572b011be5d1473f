#ifndef STRATA_TOOLS_BENCH_BENCH_H_
#define STRATA_TOOLS_BENCH_BENCH_H_

#include <cstddef>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "strata/facade/options.h"
#include "strata/tools/bench/allocator.h"
#include "strata/tools/bench/workloads/workload.h"

namespace strata::tools {

// The measurements that `strata bench` compares.
//
// Model: every pair of workload and allocator runs in its own worker process,
//   because a malloc can be replaced only when a process starts. The workers of
//   one workload warm up one after another, then measure in turns, on one core,
//   so that all of them see the same noise. Google Benchmark takes turns only
//   inside one process, so this is a separate loop.
struct BenchPlan {
  std::vector<BenchWorkload> workloads;
  std::vector<BenchAllocator> allocators;
  int rounds = 11;
  // The program that runs the worker's side (below), and its arguments before
  // and after the names of allocator and workload.
  std::vector<std::string> worker_command;
  std::vector<std::string> worker_arguments;
  // Folders that are searched for libraries to preload.
  std::vector<std::filesystem::path> library_folders;
};

// One allocator under one workload: a row of `strata bench`.
struct BenchRow {
  // kLeftOut: needs more memory than there is.
  enum class Status { kOk, kNotInstalled, kLeftOut, kFailed };

  std::string workload;
  std::size_t live_blocks = 0;  // as in BenchWorkload
  BenchWorkload::Threads threads = BenchWorkload::Threads::kOne;
  std::size_t thread_count = 1;
  std::string allocator;
  BenchAllocator::Kind kind = BenchAllocator::Kind::kNull;
  Status status = Status::kOk;
  std::string note;             // reason, unless kOk
  std::vector<double> pair_ns;  // per round: an allocation and its free
  // Peak reserved over peak live bytes. Measured after the first pass of the
  // workload's loop, which is the same work for all, or after the time in which
  // streams settle. Nothing if the allocator does not report it.
  std::optional<double> reserved_ratio;

  // Nothing without rounds.
  std::optional<double> MedianNs() const;
  std::optional<double> MinNs() const;
};

// The folders of the system that contain libraries.
std::vector<std::filesystem::path> SystemLibraryFolders();

// The first file in `folders` with a name that begins with `name`; empty if
// there is none.
std::filesystem::path FindLibrary(
    const std::string& name, const std::vector<std::filesystem::path>& folders);

// Rows in the order of the plan. A missing library or a failed worker gets a
// row with that status. Calls `progress` with a description of each step.
std::vector<BenchRow> Bench(
    const BenchPlan& plan,
    const std::function<void(const std::string&)>& progress);

// The smallest median of a host malloc under `workload`, for comparison.
std::optional<double> BestMallocNs(const std::vector<BenchRow>& rows,
                                   const std::string& workload);

// An array of objects, with a line end.
std::string ToJson(const std::vector<BenchRow>& rows);
// A readable table.
std::string ToTable(const std::vector<BenchRow>& rows);

// The task of a worker.
struct BenchTask {
  BenchAllocator allocator;
  BenchWorkload workload;
  BenchScriptOptions script;
  std::size_t pairs = 1'000'000;  // in a round, at most
  Options options;
  // Use strata_sim_memory of the options, however much memory the workload
  // needs.
  bool has_own_memory = false;
  // Cores for the threads. The serving thread also runs on the first core, if
  // there is any.
  std::vector<int> cores;
};

// The worker's side: runs a round for every line of `in`, and answers with a
// JSON object on one line: pair_ns and reserved_ratio, or left_out with a
// reason, or error. The preparation runs after the first line.
//
// Model: a round runs as many pairs as the task asks for, but not much longer
//   than 20 ms (2 ms with several threads). If the parts of the script's loop
//   differ, it runs the whole loop. The loop has run once before. Each round
//   follows one that is not measured, because other workers used the caches. A
//   simulated device is as large as the workload needs, unless the task says
//   otherwise.
//   A task that the device cannot hold is left out. So is a task for which a
//   malloc needs more than 1 TiB of addresses: the headers that it writes would
//   fill the host's memory.
void ServeBench(const BenchTask& task, std::istream& in, std::ostream& out);

// Runs the task once, without measuring, for profilers: script, prologue and
// exactly task.pairs pairs on each thread.
//
// Errors: as MakeBenchSubject and BenchSubject::Run.
void RunBenchTask(const BenchTask& task);

}  // namespace strata::tools

#endif  // STRATA_TOOLS_BENCH_BENCH_H_
