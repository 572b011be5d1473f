// strata bench: what an allocation and its free cost on the host.

#include <dlfcn.h>
#include <sched.h>

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "strata/facade/flags.h"
#include "strata/tools/arguments.h"
#include "strata/tools/bench.h"
#include "strata/tools/commands.h"
#include "strata/tools/progress.h"

namespace strata {
namespace {

constexpr const char* kUsage =
    R"(usage: strata bench [flags]

Measures what an allocation and its free cost on the host, in nanoseconds of
processor time, for the strategies of this build through the facade and, to
compare with, for peers (rules of earlier allocators, docs/peers.md) and for the
malloc of the C library and of jemalloc, mimalloc and tcmalloc, where they are
installed. Each runs in a process of its own; all take turns on one core. `null`
is what measuring itself costs.

  --bench_workloads=A,B,…   of: %s
                            (default: all; training needs --bench_trace)
  --bench_allocators=A,B,…  of: %s
                            (default: all)
  --bench_rounds=N          measurements of each (default: 11)
  --bench_operations=N      pairs in a measurement, at most (default: 100000)
  --bench_trace=FILE        what the workload training replays, in one stream
  --format=table|json       for people (default) or programs

Every flag that `strata info` lists works for the strategies, but
--allocator_strategy.
Exit code: 0; 1 if a measurement failed; 2 if nothing was measured.
)";

struct BenchSettings {
  std::string workloads;
  std::string allocators;
  int rounds = 0;
  std::size_t pairs = 0;
  BenchScriptOptions script;
};

std::size_t TakePositive(Arguments& arguments, const std::string& name,
                         std::size_t default_value) {
  constexpr std::size_t kMost = 1'000'000'000;
  const std::string text =
      arguments.TakeText(name, std::to_string(default_value));
  std::size_t value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value == 0 ||
      value > kMost) {
    throw std::invalid_argument("--" + name + ": '" + text +
                                "' is not a number from 1 to 1000000000");
  }
  return value;
}

BenchSettings TakeSettings(Arguments& arguments) {
  BenchSettings settings;
  settings.workloads = arguments.TakeText("bench_workloads", "");
  settings.allocators = arguments.TakeText("bench_allocators", "");
  settings.rounds =
      static_cast<int>(TakePositive(arguments, "bench_rounds", 11));
  settings.pairs = TakePositive(arguments, "bench_operations", 100'000);
  settings.script.pairs = std::min(settings.script.pairs, settings.pairs);
  settings.script.trace = arguments.TakeText("bench_trace", "");
  return settings;
}

// Looks every name of a list up.
template <class Row>
std::vector<Row> Select(std::string_view list,
                        const Row& (*find)(std::string_view)) {
  std::vector<Row> rows;
  while (true) {
    const std::size_t comma = list.find(',');
    rows.push_back(find(list.substr(0, comma)));
    if (comma == std::string_view::npos) return rows;
    list.remove_prefix(comma + 1);
  }
}

std::vector<BenchWorkload> SelectWorkloads(const BenchSettings& settings) {
  std::vector<BenchWorkload> selected;
  if (!settings.workloads.empty()) {
    selected = Select(settings.workloads, &FindBenchWorkload);
  } else {
    for (const BenchWorkload& workload : BenchWorkloads()) {
      if (!workload.needs_trace || !settings.script.trace.empty()) {
        selected.push_back(workload);
      }
    }
  }
  for (const BenchWorkload& workload : selected) {
    if (!workload.needs_trace) continue;
    if (settings.script.trace.empty()) {
      throw std::invalid_argument(std::string("the workload ") + workload.name +
                                  " needs --bench_trace=FILE");
    }
    workload.make(settings.script);  // throws if the file is bad
  }
  return selected;
}

// Pins the process to one core that it may use, so that the workers, which
// inherit this, share it.
void PinToOneCore() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  // Not the first: it serves most interrupts.
  for (int core = CPU_SETSIZE - 1; core >= 0; --core) {
    if (!CPU_ISSET(core, &allowed)) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

int RunWorker(const BenchSettings& settings,
              const std::vector<std::string>& names, const Options& options) {
  if (names.size() != 3) {
    throw std::invalid_argument("bench worker: an allocator and a workload");
  }
  const BenchAllocator& allocator = FindBenchAllocator(names[1]);
  if (!allocator.symbol.empty() &&
      dlsym(RTLD_DEFAULT, allocator.symbol.c_str()) == nullptr) {
    std::cout << R"({"error":"the library could not be preloaded"})"
              << std::endl;
    return 0;
  }
  // A process that never had a second thread leaves locks out (hotpath.md §8).
  std::thread([] {}).join();
  ServeBench(allocator, FindBenchWorkload(names[2]), settings.script,
             settings.pairs, options, std::cin, std::cout);
  return 0;
}

// The worker gets the arguments that this process got, but what it is to do.
BenchPlan MakePlan(const BenchSettings& settings,
                   const std::vector<std::string>& flags) {
  BenchPlan plan;
  plan.workloads = SelectWorkloads(settings);
  plan.allocators = settings.allocators.empty()
                        ? BenchAllocators()
                        : Select(settings.allocators, &FindBenchAllocator);
  plan.rounds = settings.rounds;
  plan.worker_command = {
      std::filesystem::read_symlink("/proc/self/exe").string(), "bench",
      "worker"};
  plan.worker_arguments = {
      "--bench_operations=" + std::to_string(settings.pairs),
      "--bench_trace=" + settings.script.trace};
  plan.worker_arguments.insert(plan.worker_arguments.end(), flags.begin(),
                               flags.end());
  plan.library_folders = SystemLibraryFolders();
  return plan;
}

template <class Row>
std::string Names(const std::vector<Row>& rows) {
  std::string names;
  for (const Row& row : rows) {
    names += (names.empty() ? "" : ", ") + std::string(row.name);
  }
  return names;
}

}  // namespace

int RunBench(int argc, char** argv) {
  Arguments arguments(argc, argv);
  if (arguments.TakeBool("help", false)) {
    std::printf(kUsage, Names(BenchWorkloads()).c_str(),
                Names(BenchAllocators()).c_str());
    return 0;
  }
  const BenchSettings settings = TakeSettings(arguments);
  const bool as_json =
      arguments.TakeChoice("format", "table", {"table", "json"}) == "json";
  const std::vector<std::string> flags = arguments.rest();
  const std::vector<std::string> names = arguments.ParseFlags();
  const Options options = OptionsFromFlags();
  if (!names.empty() && names[0] == "worker") {
    return RunWorker(settings, names, options);
  }
  if (!names.empty()) {
    throw std::invalid_argument("bench: takes no argument '" + names[0] +
                                "'; see strata bench --help");
  }
  const BenchPlan plan = MakePlan(settings, flags);
  PinToOneCore();
  ProgressLine progress;
  const std::vector<BenchRow> rows =
      Bench(plan, [&](const std::string& text) { progress.Show(text); });
  progress.Clear();
  std::fputs((as_json ? ToJson(rows) : ToTable(rows)).c_str(), stdout);
  for (const BenchRow& row : rows) {
    if (row.status == BenchRow::Status::kFailed) return 1;
  }
  return 0;
}

}  // namespace strata
