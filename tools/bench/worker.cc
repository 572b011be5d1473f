// The worker's side of `strata bench`.

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <istream>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <utility>

#include "strata/base/size.h"
#include "strata/platform/registry.h"
#include "strata/platform/sim/memory/device_memory.h"
#include "strata/tools/bench/bench.h"
#include "strata/tools/bench/cores.h"
#include "strata/tools/bench/round_length.h"
#include "strata/tools/bench/subject.h"
#include "strata/tools/terminal/dump_json.h"

namespace strata::tools {
namespace {

using Kind = BenchAllocator::Kind;

// Long compared with the cost of the clock, short enough for many rounds.
constexpr std::chrono::milliseconds kRoundTime{20};
// For several threads, in wall time: shorter than a time slice, so that some
// rounds on a busy machine are not interrupted.
constexpr std::chrono::milliseconds kTeamRoundTime{2};
// Threads on separate streams with repeated steps exchange memory until every
// stream has enough for its steps at the same time. Without this wait, the
// median includes growth (docs/bench.md).
constexpr std::chrono::milliseconds kSettleTime{1000};
constexpr std::uint64_t kMostForMalloc = Gibibytes(1024);
// Factor over the live bytes, for chunks that are not full.
constexpr std::uint64_t kRoomFactor = 4;

void Answer(std::ostream& out, const char* key, const nlohmann::json& value) {
  nlohmann::json answer;
  answer[key] = value;
  out << DumpJsonLine(answer) << std::flush;
}

std::uint64_t LiveBytes(const BenchTask& task, const BenchScript& script) {
  return script.peak_live_bytes * task.workload.thread_count;
}

// The task's options, with the memory of the simulated device.
Options OptionsFor(const BenchTask& task, const BenchScript& script) {
  Options options = task.options;
  if (task.has_own_memory) return options;
  std::uint64_t& memory = options.platform.sim_memory_bytes;
  const std::uint64_t wanted = std::min(sim::kMaxDeviceMemoryBytes,
                                        kRoomFactor * LiveBytes(task, script));
  memory = std::max<std::uint64_t>(memory, AlignUp(wanted, Gibibytes(1)));
  return options;
}

// The reason why the task cannot run, if there is one.
std::optional<std::string> Hindrance(const BenchTask& task,
                                     const BenchScript& script,
                                     const Options& options) {
  const std::uint64_t live = LiveBytes(task, script);
  if (task.allocator.kind == Kind::kNull ||
      task.allocator.kind == Kind::kLock) {
    return std::nullopt;
  }
  if (task.allocator.kind == Kind::kMalloc) {
    if (live <= kMostForMalloc) return std::nullopt;
    return HumanBytes(live) + " at once: more than a malloc is asked for";
  }
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  const auto platform = MakePlatform(options.platform);
  const Status status =
      platform->device(0).MemGetInfo(&free_bytes, &total_bytes);
  if (status != Status::kSuccess || live <= total_bytes) return std::nullopt;
  return HumanBytes(live) + " at once: the device has " +
         HumanBytes(total_bytes);
}

std::chrono::nanoseconds RoundTime(const BenchWorkload& workload) {
  return workload.threads == BenchWorkload::Threads::kOne ? kRoundTime
                                                          : kTeamRoundTime;
}

// Plays the whole loop, at least once: only then the script's blocks have their
// sizes, and the heap is fragmented.
void WarmUp(BenchSubject& subject, const BenchTask& task,
            const BenchScript& script) {
  const bool settles =
      task.workload.threads == BenchWorkload::Threads::kOwnStreams &&
      !script.is_uniform;
  const auto end = std::chrono::steady_clock::now() +
                   (settles ? kSettleTime : std::chrono::milliseconds(0));
  do {
    subject.Run(script.pairs());
  } while (std::chrono::steady_clock::now() < end);
}

// Null if the allocator does not report it.
nlohmann::json ReservedRatio(BenchSubject& subject) {
  const auto reserved = subject.peak_reserved_bytes();
  if (!reserved) return nullptr;
  return static_cast<double>(*reserved) /
         static_cast<double>(subject.peak_live_bytes());
}

void Serve(const BenchTask& task, std::istream& in, std::ostream& out) {
  // Do nothing before the first request, because other workers measure until
  // then. A warm-up beside a dozen other processes would measure them.
  std::string line;
  if (!std::getline(in, line)) return;
  const BenchScript script = task.workload.make(task.script);
  const Options options = OptionsFor(task, script);
  if (const auto reason = Hindrance(task, script, options)) {
    return Answer(out, "left_out", *reason);
  }
  if (!task.cores.empty()) PinThread(task.cores[0]);
  // Without this, the header of an untouched block would occupy 2 MiB of the
  // host's memory.
  if (task.allocator.kind == Kind::kMalloc) {
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
  }
  const auto subject = MakeBenchSubject(task.allocator, task.workload, script,
                                        options, task.cores);
  WarmUp(*subject, task, script);
  // Measured now, when every allocator has done the same work, or the same
  // time.
  nlohmann::json answer;
  answer["reserved_ratio"] = ReservedRatio(*subject);
  // Also for a team, which has short rounds: this is the warm-up for dozens of
  // them.
  const auto pairs_in = [&](std::chrono::nanoseconds time) {
    return PairsPerRound(*subject, script, time, task.pairs);
  };
  const std::size_t pairs_of_one = pairs_in(kRoundTime);
  const std::chrono::nanoseconds round_time = RoundTime(task.workload);
  const std::size_t pairs =
      round_time == kRoundTime ? pairs_of_one : pairs_in(round_time);
  do {
    // Other workers used the cores and caches. A round is too short to
    // compensate: with 100 000 live blocks the result would be twice as large.
    subject->Run(pairs);
    const std::chrono::nanoseconds time = subject->Run(pairs);
    answer["pair_ns"] =
        static_cast<double>(time.count()) / static_cast<double>(pairs);
    out << DumpJsonLine(answer) << std::flush;
  } while (std::getline(in, line));
}

}  // namespace

void ServeBench(const BenchTask& task, std::istream& in, std::ostream& out) {
  try {
    Serve(task, in, out);
  } catch (const std::exception& error) {
    Answer(out, "error", error.what());
  }
}

void RunBenchTask(const BenchTask& task) {
  BenchScript script = task.workload.make(task.script);
  const Options options = OptionsFor(task, script);
  MakeBenchSubject(task.allocator, task.workload, std::move(script), options,
                   task.cores)
      ->Run(task.pairs);
}

}  // namespace strata::tools
