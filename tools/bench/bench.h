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
#include "strata/tools/bench/workload.h"

namespace strata {

// What `strata bench` compares, and how.
//
// Model: every pair of workload and allocator runs in a worker process of its
//   own, because a malloc can be exchanged only when a process starts. The
//   workers of one workload warm up one after the other, then measure in turns,
//   on one core, so that all of them see the same noise. A loop of our own does
//   this: Google Benchmark takes turns only inside one process.
struct BenchPlan {
  std::vector<BenchWorkload> workloads;
  std::vector<BenchAllocator> allocators;
  int rounds = 11;
  // The program that runs BenchWorker, and its arguments before allocator and
  // workload, and after them.
  std::vector<std::string> worker_command;
  std::vector<std::string> worker_arguments;
  // Where libraries to preload are looked for.
  std::vector<std::filesystem::path> library_folders;
};

// One allocator under one workload: a row of `strata bench`.
struct BenchRow {
  // kLeftOut: it would need more memory than there is.
  enum class Status { kOk, kNotInstalled, kLeftOut, kFailed };

  std::string workload;
  std::size_t live_blocks = 0;  // as in BenchWorkload
  BenchWorkload::Threads threads = BenchWorkload::Threads::kOne;
  std::size_t thread_count = 1;
  std::string allocator;
  BenchAllocator::Kind kind = BenchAllocator::Kind::kNull;
  Status status = Status::kOk;
  std::string note;             // why it is not kOk
  std::vector<double> pair_ns;  // an allocation and its free; per round
  // Peak reserved over peak live bytes, after the first pass of the workload's
  // loop, which is the same work for all, or after the time in which streams
  // settle; nothing if the allocator does not tell.
  std::optional<double> reserved_ratio;

  // Nothing without rounds.
  std::optional<double> MedianNs() const;
  std::optional<double> MinNs() const;
};

// The folders of the system in which libraries lie.
std::vector<std::filesystem::path> SystemLibraryFolders();

// The first file in `folders` whose name begins with `name`; empty if there is
// none.
std::filesystem::path FindLibrary(
    const std::string& name, const std::vector<std::filesystem::path>& folders);

// Rows in the order of the plan. A library that is missing, or a worker that
// fails, is a row that says so. `progress` is told what is being done.
std::vector<BenchRow> Bench(
    const BenchPlan& plan,
    const std::function<void(const std::string&)>& progress);

// The least median of a host malloc under `workload`, to compare with.
std::optional<double> BestMallocNs(const std::vector<BenchRow>& rows,
                                   const std::string& workload);

// An array of objects, with a line end.
std::string ToJson(const std::vector<BenchRow>& rows);
// For people.
std::string ToTable(const std::vector<BenchRow>& rows);

// What a worker measures.
struct BenchTask {
  BenchAllocator allocator;
  BenchWorkload workload;
  BenchScriptOptions script;
  std::size_t pairs = 1'000'000;  // in a round, at most
  Options options;
  // Their strata_sim_memory counts, however much the workload needs.
  bool has_own_memory = false;
  // What threads are kept on. The one that serves is on the first, too, if
  // there is any.
  std::vector<int> cores;
};

// The worker's side: runs a round for every line of `in`, and answers with a
// JSON object on one line: pair_ns and reserved_ratio, or left_out with a
// reason, or error. Whatever comes before a round is done after the first line.
//
// Model: a round runs as many pairs as the task asks for, but not much longer
//   than 20 ms (2 ms with several threads); the whole of the script's loop if
//   its parts differ. The loop has run once before, and each round comes after
//   one that is not measured, since others had the caches. A simulated device
//   is as large as the workload needs, unless the task says otherwise.
//   What the device cannot hold is left out, and so is what takes a malloc more
//   than 1 TiB of addresses: the headers that it writes would fill the host's
//   memory.
void ServeBench(const BenchTask& task, std::istream& in, std::ostream& out);

// Runs the task once, without measuring, for profilers: script, prologue and
// exactly task.pairs pairs on each thread.
//
// Errors: as MakeBenchSubject and BenchSubject::Run.
void RunBenchTask(const BenchTask& task);

}  // namespace strata

#endif  // STRATA_TOOLS_BENCH_BENCH_H_
