// strata bench: the cost of an allocation and its free on the host.

#include <dlfcn.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "strata/base/parse_number.h"
#include "strata/facade/flags.h"
#include "strata/facade/settings/tf_environment.h"
#include "strata/tools/bench/bench.h"
#include "strata/tools/bench/cores.h"
#include "strata/tools/bench/plot.h"
#include "strata/tools/commands/arguments.h"
#include "strata/tools/commands/commands.h"
#include "strata/tools/replay/recordings.h"
#include "strata/tools/terminal/progress.h"

namespace strata::tools {
namespace {

constexpr const char* kBenchUsage =
    R"(usage: strata bench [flags]
       strata bench run ALLOCATOR WORKLOAD [flags]

Measures the cost of an allocation and its free on the host, in nanoseconds.
It measures the strategies of this build, through the facade and (c:…) through
the C ABI. For comparison it measures peers (reimplementations of earlier
allocators, docs/peers.md) and the malloc of the C library and of jemalloc,
mimalloc and tcmalloc, where they are installed. Each runs in its own process;
all take turns on one core. Times are processor time; with several threads or a
driver they are wall time per thread. `null` is the cost of the measurement,
`null_locked` the same with a spin lock per stream.
The table also shows the peak reserved bytes over the peak live bytes. `run`
runs one allocator once, for profilers.

  --bench_workloads=A,B,…   default: those without a *; all: every one
%s
  --bench_allocators=A,B,…  default: those without a *; all: every one
%s
  --bench_rounds=N          measurements per row (default: 11)
  --bench_operations=N      most pairs of a thread in a measurement (default:
                            1000000); with `run`, the exact number; live blocks
                            are freed at the end
  --bench_seed=N            draws other random sizes (default: 1)
  --bench_trace=FILE,…      traces to replay, in one stream; a folder stands for
                            its traces (default: %s, if it exists)
  --bench_library=FILE      a shared library to measure as `library`; its
                            functions: tools/bench/heaps/heap_library.h
  --bench_plot=FILE         draws cost against live blocks and threads, as SVG
  --format=table|json       for people (default) or programs

Another number in a workload's name is possible. Every flag that `strata info`
lists works for the strategies, except --allocator_strategy. A simulated device
is as large as a workload needs, unless --strata_sim_memory says otherwise.
Exit code: 0; 1 if a measurement failed; 2 if nothing was measured.
)";

constexpr const char* kBundledTraces = "tests/data/traces";
constexpr const char* kAll = "all";
// The argument of a worker: a file, with a name that may contain commas.
constexpr const char* kWorkerTrace = "bench_worker_trace";

struct BenchSettings {
  std::string workloads;
  std::string allocators;
  int rounds = 0;
  std::size_t pairs = 0;
  BenchScriptOptions script;
  std::string library;  // path; empty: none
  std::string plot;     // path; empty: none
};

std::size_t TakePositive(Arguments& arguments, const std::string& name,
                         std::size_t default_value) {
  constexpr std::size_t kMost = 1'000'000'000;
  const std::string text =
      arguments.TakeText(name, std::to_string(default_value));
  const auto value = ParseNumber<std::size_t>(text);
  if (!value || *value == 0 || *value > kMost) {
    throw std::invalid_argument("--" + name + ": '" + text +
                                "' is not a number from 1 to 1000000000");
  }
  return *value;
}

// The names of the argument, or nothing if it is missing.
std::string TakeNames(Arguments& arguments, const std::string& name) {
  const std::optional<std::string> given = arguments.TakeText(name);
  if (given && given->empty()) {
    throw std::invalid_argument("--" + name + ": names none");
  }
  return given.value_or("");
}

BenchSettings TakeSettings(Arguments& arguments) {
  BenchSettings settings;
  settings.workloads = TakeNames(arguments, "bench_workloads");
  settings.allocators = TakeNames(arguments, "bench_allocators");
  settings.rounds =
      static_cast<int>(TakePositive(arguments, "bench_rounds", 11));
  settings.pairs = TakePositive(arguments, "bench_operations", 1'000'000);
  settings.script.pairs = std::min(settings.script.pairs, settings.pairs);
  settings.script.seed = TakePositive(arguments, "bench_seed", 1);
  settings.script.traces = BenchTraces(arguments.TakeText(
      "bench_trace",
      std::filesystem::is_directory(kBundledTraces) ? kBundledTraces : ""));
  for (std::string& trace : arguments.TakeTexts(kWorkerTrace)) {
    settings.script.traces.push_back(std::move(trace));
  }
  settings.library = arguments.TakeText("bench_library", "");
  settings.plot = arguments.TakeText("bench_plot", "");
  return settings;
}

std::vector<std::string> Split(std::string_view list) {
  std::vector<std::string> names;
  while (true) {
    const std::size_t comma = list.find(',');
    names.emplace_back(list.substr(0, comma));
    if (comma == std::string_view::npos) return names;
    list.remove_prefix(comma + 1);
  }
}

// The rows that a list names; `find` looks one up.
template <class Row, class Find>
std::vector<Row> Select(const std::string& list, const std::vector<Row>& table,
                        Find find) {
  std::vector<Row> rows;
  if (list.empty() || list == kAll) {
    std::copy_if(
        table.begin(), table.end(), std::back_inserter(rows),
        [&](const Row& row) { return row.is_default || !list.empty(); });
    return rows;
  }
  for (const std::string& name : Split(list)) rows.push_back(find(name));
  return rows;
}

std::vector<BenchWorkload> SelectWorkloads(const BenchSettings& settings) {
  std::vector<BenchWorkload> selected =
      Select(settings.workloads, BenchWorkloads(settings.script),
             [&](const std::string& name) {
               return FindBenchWorkload(name, settings.script);
             });
  // Read the traces now: a trace that cannot be read must not fail after
  // minutes of measurements.
  for (const BenchWorkload& workload : selected) {
    if (workload.is_trace) workload.make(settings.script);
  }
  return selected;
}

// The allocator with the library that the settings name. With a library, it is
// measured by default.
BenchAllocator WithLibrary(BenchAllocator allocator,
                           const BenchSettings& settings) {
  if (allocator.kind == BenchAllocator::Kind::kLibrary) {
    allocator.library = settings.library;
    allocator.is_default = !settings.library.empty();
  }
  return allocator;
}

std::vector<BenchAllocator> SelectAllocators(const BenchSettings& settings) {
  std::vector<BenchAllocator> table;
  for (const BenchAllocator& allocator : BenchAllocators()) {
    table.push_back(WithLibrary(allocator, settings));
  }
  return Select(settings.allocators, table, [&](const std::string& name) {
    return WithLibrary(FindBenchAllocator(name), settings);
  });
}

BenchTask MakeTask(const BenchSettings& settings,
                   const std::vector<std::string>& names,
                   const Options& options) {
  if (names.size() != 3) {
    throw std::invalid_argument("bench " + names[0] +
                                ": an allocator and a workload");
  }
  BenchTask task;
  task.allocator = WithLibrary(FindBenchAllocator(names[1]), settings);
  task.workload = FindBenchWorkload(names[2], settings.script);
  task.script = settings.script;
  task.pairs = settings.pairs;
  task.options = options;
  task.has_own_memory = IsFlagSet("strata_sim_memory");
  task.cores = AllowedCores();
  return task;
}

std::vector<std::string> FilesRead(const BenchSettings& settings) {
  std::vector<std::string> files = settings.script.traces;
  if (!settings.library.empty()) files.push_back(settings.library);
  return files;
}

// `run` refuses arguments about the measurement, and does not overwrite the
// files that it reads.
void RequireArgumentsOfRun(Arguments given, const BenchSettings& settings,
                           const Options& options) {
  for (const char* name : {"bench_workloads", "bench_allocators",
                           "bench_rounds", "bench_plot", "format"}) {
    if (given.TakeText(name)) {
      throw std::invalid_argument(std::string("--") + name +
                                  ": bench run measures nothing");
    }
  }
  ForEachRecording(options,
                   [&](std::string_view flag, const std::string& path) {
                     RequireOtherFile(flag, path, FilesRead(settings));
                   });
}

// Without layers the files of these options would not be written.
void RequireLayers(const BenchAllocator& allocator, const Options& options) {
  Options by_layers = options;
  switch (allocator.kind) {
    case BenchAllocator::Kind::kFacade:
    case BenchAllocator::Kind::kCAbi:
      return;
    case BenchAllocator::Kind::kPeer:
    case BenchAllocator::Kind::kDriver:
    case BenchAllocator::Kind::kDriverPool:
      by_layers.platform.device_trace_path.clear();
      break;
    default:
      break;
  }
  RequireNoRecording(by_layers, allocator.name + " does not record it");
}

// The row must be named after the strategy that is measured.
void RequireOwnStrategy(const BenchAllocator& allocator,
                        const Options& options) {
  if (!options.host.tf_environment || allocator.strategy.empty()) return;
  const std::string run =
      WithProcessEnvironment(OptionsOf(allocator, options)).Strategy();
  if (run == allocator.strategy) return;
  throw std::invalid_argument("--strata_tf_environment: the environment has " +
                              run + " run for " + allocator.name +
                              "; leave out the environment");
}

// Whether this process has loaded the library of the task.
bool HasLibrary(const BenchTask& task) {
  return task.allocator.symbol.empty() ||
         dlsym(RTLD_DEFAULT, task.allocator.symbol.c_str()) != nullptr;
}

int RunWorker(const BenchTask& task) {
  if (!HasLibrary(task)) {
    std::cout << R"({"error":"the library could not be preloaded"})"
              << std::endl;
    return 0;
  }
  ServeBench(task, std::cin, std::cout);
  return 0;
}

// The worker gets the arguments of this process, without those that select its
// work.
BenchPlan MakePlan(const BenchSettings& settings,
                   const std::vector<std::string>& flags) {
  BenchPlan plan;
  plan.workloads = SelectWorkloads(settings);
  plan.allocators = SelectAllocators(settings);
  plan.rounds = settings.rounds;
  plan.worker_command = {
      std::filesystem::read_symlink("/proc/self/exe").string(), "bench",
      "worker"};
  plan.worker_arguments = {
      "--bench_operations=" + std::to_string(settings.pairs),
      "--bench_seed=" + std::to_string(settings.script.seed),
      "--bench_trace=", "--bench_library=" + settings.library};
  for (const std::string& trace : settings.script.traces) {
    plan.worker_arguments.push_back(std::string("--") + kWorkerTrace + "=" +
                                    trace);
  }
  plan.worker_arguments.insert(plan.worker_arguments.end(), flags.begin(),
                               flags.end());
  plan.library_folders = SystemLibraryFolders();
  return plan;
}

// Lines with the indentation of the help text.
template <class Row>
std::string Names(const std::vector<Row>& rows) {
  constexpr std::size_t kWidth = 80;
  const std::string indent(28, ' ');
  std::string text;
  std::string line = indent;
  for (const Row& row : rows) {
    const std::string name = row.name + (row.is_default ? "" : "*");
    if (line.size() + name.size() + 2 > kWidth) {
      text += line + "\n";
      line = indent;
    }
    line += (line == indent ? "" : " ") + name;
  }
  return text + line;
}

// Opened before the measurements, which take minutes. Closed if there is no
// path.
std::ofstream OpenPlot(const BenchPlan& plan, const std::string& path) {
  if (path.empty()) return {};
  if (std::none_of(plan.workloads.begin(), plan.workloads.end(), &IsPlotted)) {
    throw std::invalid_argument(
        "--bench_plot: no workload has a number to draw over, as random_100 "
        "has");
  }
  std::ofstream file(path);
  if (!file) {
    throw std::invalid_argument("--bench_plot: cannot write " + path + ": " +
                                std::strerror(errno));
  }
  return file;
}

int RunMeasurements(const BenchPlan& plan, const std::string& plot_path,
                    bool as_json) {
  std::ofstream plot = OpenPlot(plan, plot_path);
  ProgressLine progress;
  const std::vector<BenchRow> rows =
      Bench(plan, [&](const std::string& text) { progress.Show(text); });
  progress.Clear();
  std::fputs((as_json ? ToJson(rows) : ToTable(rows)).c_str(), stdout);
  if (plot.is_open() && !(plot << ToSvg(rows) << std::flush)) {
    throw std::runtime_error("--bench_plot: cannot write " + plot_path);
  }
  bool is_measured = false;
  for (const BenchRow& row : rows) {
    if (row.status == BenchRow::Status::kFailed) return 1;
    is_measured = is_measured || row.status == BenchRow::Status::kOk;
  }
  return is_measured ? 0 : 2;
}

}  // namespace

int RunBench(int argc, char** argv) {
  Arguments arguments(argc, argv);
  const Arguments given = arguments;
  const bool is_help = arguments.TakeHelp();
  const BenchSettings settings = TakeSettings(arguments);
  if (is_help) {
    std::printf(kBenchUsage, Names(BenchWorkloads(settings.script)).c_str(),
                Names(BenchAllocators()).c_str(), kBundledTraces);
    return 0;
  }
  const bool as_json =
      arguments.TakeChoice("format", "table", {"table", "json"}) == "json";
  const std::vector<std::string> flags = arguments.rest();
  const std::vector<std::string> names = arguments.ParseFlags();
  const Options options = OptionsFromFlags();
  if (!names.empty() && (names[0] == "worker" || names[0] == "run")) {
    const BenchTask task = MakeTask(settings, names, options);
    // The C library omits locks in a process that never had a second thread
    // (hotpath.md §8).
    std::thread([] {}).join();
    if (names[0] == "worker") return RunWorker(task);
    RequireArgumentsOfRun(given, settings, options);
    RequireLayers(task.allocator, options);
    RequireOwnStrategy(task.allocator, options);
    if (!HasLibrary(task)) {
      throw std::invalid_argument("bench run " + task.allocator.name +
                                  ": start it with LD_PRELOAD=<path of " +
                                  task.allocator.library + ">");
    }
    RunBenchTask(task);
    return 0;
  }
  if (!names.empty()) {
    throw std::invalid_argument("bench: takes no argument '" + names[0] +
                                "'; see strata bench --help");
  }
  RequireNoRecording(options,
                     "bench measures in several processes, each of which would "
                     "write it");
  if (!settings.plot.empty()) {
    RequireOtherFile("bench_plot", settings.plot, FilesRead(settings));
  }
  const BenchPlan plan = MakePlan(settings, flags);
  for (const BenchAllocator& allocator : plan.allocators) {
    RequireOwnStrategy(allocator, options);
  }
  return RunMeasurements(plan, settings.plot, as_json);
}

}  // namespace strata::tools
