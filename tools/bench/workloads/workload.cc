#include "strata/tools/bench/workloads/workload.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "strata/base/parse_number.h"
#include "strata/base/size.h"

namespace strata::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTracePrefix = "trace:";

// Workloads that differ in the number at the end of their names.
struct Family {
  const char* name;  // before the number
  std::vector<std::size_t> usual;
  std::size_t most_by_default;
  std::size_t most;
  BenchWorkload (*make)(std::size_t number);
};

// Expected size of `live` log-uniform blocks up to `largest`; their mean is
// (largest - smallest) / ln(largest / smallest).
double ExpectedLiveBytes(std::size_t live, std::uint64_t largest) {
  const auto top = static_cast<double>(largest);
  return static_cast<double>(live) * top / std::log(top / 256);
}

// The largest block of `live` blocks, such that half of a simulated device (4
// TiB at most) holds them: some allocators need twice as much.
std::uint64_t LargestBytes(std::size_t live) {
  const auto most = static_cast<double>(Gibibytes(2 * 1024));
  std::uint64_t largest = Mebibytes(64);
  while (ExpectedLiveBytes(live, largest) > most) largest /= 2;
  return largest;
}

BenchWorkload Replace(std::size_t live, std::uint64_t largest) {
  BenchWorkload workload;
  workload.summary = std::to_string(live) + " live blocks of 256 B to " +
                     HumanBytes(largest) + ", replaced at random";
  workload.live_blocks = live;
  workload.make = [=](const BenchScriptOptions& options) {
    return MakeReplaceScript(options.pairs, live, largest, options.seed);
  };
  return workload;
}
BenchWorkload Random(std::size_t live) {
  return Replace(live, LargestBytes(live));
}
BenchWorkload RandomSmall(std::size_t live) {
  return Replace(live, Kibibytes(256));
}

BenchScript MakePair(const BenchScriptOptions& options) {
  return MakePairScript(options.pairs);
}
BenchScript MakeTraining(const BenchScriptOptions& options) {
  return MakeTrainingScript(Shapes::kFixed, options.seed);
}

BenchWorkload OnThreads(BenchWorkload::Threads kind, std::size_t threads,
                        const char* what,
                        BenchScript (*make)(const BenchScriptOptions&)) {
  BenchWorkload workload;
  workload.summary = std::to_string(threads);
  workload.summary += threads == 1 ? " thread: " : " threads, ";
  if (threads != 1) {
    workload.summary += kind == BenchWorkload::Threads::kOneStream
                            ? "all on one stream: "
                            : "each on its own stream: ";
  }
  workload.summary += what;
  workload.threads = kind;
  workload.thread_count = threads;
  workload.make = make;
  return workload;
}
BenchWorkload PairOwnStreams(std::size_t threads) {
  return OnThreads(BenchWorkload::Threads::kOwnStreams, threads, "pair",
                   &MakePair);
}
BenchWorkload PairOneStream(std::size_t threads) {
  return OnThreads(BenchWorkload::Threads::kOneStream, threads, "pair",
                   &MakePair);
}
BenchWorkload TrainingOwnStreams(std::size_t threads) {
  return OnThreads(BenchWorkload::Threads::kOwnStreams, threads, "training",
                   &MakeTraining);
}
BenchWorkload TrainingOneStream(std::size_t threads) {
  return OnThreads(BenchWorkload::Threads::kOneStream, threads, "training",
                   &MakeTraining);
}

constexpr std::size_t kMostLive = 10'000'000;
constexpr std::size_t kMostThreads = 256;

const std::vector<Family>& Families() {
  static const auto* const families = new std::vector<Family>{
      {"random_",
       {100, 1000, 10'000, 100'000, 1'000'000},
       100'000,
       kMostLive,
       &Random},
      {"random_small_",
       {100, 1000, 10'000, 100'000, 1'000'000},
       100'000,
       kMostLive,
       &RandomSmall},
      {"pair_own_streams_", {1, 2, 4}, 2, kMostThreads, &PairOwnStreams},
      {"pair_one_stream_", {1, 2, 4}, 2, kMostThreads, &PairOneStream},
      {"training_own_streams_",
       {1, 2, 4},
       2,
       kMostThreads,
       &TrainingOwnStreams},
      {"training_one_stream_", {1, 2, 4}, 2, kMostThreads, &TrainingOneStream},
  };
  return *families;
}

BenchWorkload Member(const Family& family, std::size_t number) {
  BenchWorkload workload = family.make(number);
  workload.name = family.name + std::to_string(number);
  workload.is_default = number <= family.most_by_default;
  return workload;
}

// The workload of a family with the given `name`.
std::optional<BenchWorkload> FindMember(std::string_view name) {
  for (const Family& family : Families()) {
    const std::string_view prefix = family.name;
    if (name.substr(0, prefix.size()) != prefix) continue;
    const auto number = ParseNumber<std::size_t>(name.substr(prefix.size()));
    if (number && *number >= 1 && *number <= family.most) {
      return Member(family, *number);
    }
  }
  return std::nullopt;
}

BenchWorkload OnOneThread(
    const char* name, const char* summary,
    std::function<BenchScript(const BenchScriptOptions&)> make) {
  BenchWorkload workload;
  workload.name = name;
  workload.summary = summary;
  workload.make = std::move(make);
  return workload;
}

std::vector<BenchWorkload> TensorWorkloads() {
  return {OnOneThread("pair", "one block of 4 KiB, freed at once", &MakePair),
          OnOneThread("lifo", "100 blocks of 4 KiB, last freed first",
                      [](const BenchScriptOptions& options) {
                        return MakeTensorScript(options.pairs,
                                                FreeOrder::kLastFirst);
                      }),
          OnOneThread("fifo", "100 blocks of 4 KiB, first freed first",
                      [](const BenchScriptOptions& options) {
                        return MakeTensorScript(options.pairs,
                                                FreeOrder::kFirstFirst);
                      })};
}

std::vector<BenchWorkload> TrainingWorkloads() {
  return {
      OnOneThread("training", "steps of training, one like the other",
                  &MakeTraining),
      OnOneThread("training_layers",
                  "steps of training, of layers that are alike",
                  [](const BenchScriptOptions& options) {
                    return MakeTrainingScript(Shapes::kRepeated, options.seed);
                  }),
      OnOneThread("training_jittered",
                  "steps of training, each with shapes of its own",
                  [](const BenchScriptOptions& options) {
                    return MakeTrainingScript(Shapes::kJittered, options.seed);
                  })};
}

BenchWorkload HandOver() {
  BenchWorkload workload = OnOneThread(
      "hand_over", "blocks of 4 KiB, allocated by one thread, freed by another",
      &MakePair);
  workload.threads = BenchWorkload::Threads::kHandOver;
  workload.thread_count = 2;
  return workload;
}

std::string NameOf(const std::string& trace) {
  const std::string file = fs::path(trace).filename().string();
  return kTracePrefix + file.substr(0, file.find('.'));
}

std::vector<BenchWorkload> TraceWorkloads(
    const std::vector<std::string>& traces) {
  std::set<std::string> names;
  std::vector<BenchWorkload> workloads;
  for (const std::string& trace : traces) {
    const std::string name = NameOf(trace);
    if (!names.insert(name).second) {
      throw std::invalid_argument("two traces would be named '" + name + "'");
    }
    workloads.push_back(OnOneThread(
        name.c_str(), "one pass of a recorded trace",
        [trace](const BenchScriptOptions&) { return MakeTraceScript(trace); }));
    workloads.back().is_trace = true;
  }
  return workloads;
}

}  // namespace

std::vector<BenchWorkload> BenchWorkloads(const BenchScriptOptions& options) {
  std::vector<BenchWorkload> workloads = TensorWorkloads();
  const auto append = [&](std::vector<BenchWorkload> more) {
    std::move(more.begin(), more.end(), std::back_inserter(workloads));
  };
  append(TrainingWorkloads());
  append(TraceWorkloads(options.traces));
  for (const Family& family : Families()) {
    for (const std::size_t number : family.usual) {
      workloads.push_back(Member(family, number));
    }
  }
  workloads.push_back(HandOver());
  return workloads;
}

BenchWorkload FindBenchWorkload(std::string_view name,
                                const BenchScriptOptions& options) {
  std::string known;
  for (BenchWorkload& workload : BenchWorkloads(options)) {
    if (name == workload.name) return std::move(workload);
    known += (known.empty() ? "" : ", ") + workload.name;
  }
  if (std::optional<BenchWorkload> member = FindMember(name)) return *member;
  throw std::invalid_argument("there is no workload '" + std::string(name) +
                              "' (known: " + known + "; up to " +
                              std::to_string(kMostLive) + " blocks and " +
                              std::to_string(kMostThreads) + " threads)");
}

std::vector<std::string> BenchTraces(std::string_view list) {
  std::vector<std::string> traces;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const fs::path path(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
    if (!fs::exists(path)) {
      throw std::invalid_argument("--bench_trace: there is no " +
                                  path.string());
    }
    if (fs::is_regular_file(path)) {
      traces.push_back(path.string());
      continue;
    }
    if (!fs::is_directory(path)) {
      throw std::invalid_argument("--bench_trace: " + path.string() +
                                  ": every allocator reads it, so it has to be "
                                  "a file");
    }
    const std::size_t first = traces.size();
    for (const auto& entry : fs::directory_iterator(path)) {
      if (entry.is_regular_file() && entry.path().extension() != ".md") {
        traces.push_back(entry.path().string());
      }
    }
    std::sort(traces.begin() + static_cast<std::ptrdiff_t>(first),
              traces.end());
  }
  return traces;
}

}  // namespace strata::tools
