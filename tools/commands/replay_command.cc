// strata replay: the cost of traces under one or several strategies.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "strata/base/parse_number.h"
#include "strata/facade/flags.h"
#include "strata/facade/settings/tf_environment.h"
#include "strata/platform/sim/device/sim_platform.h"
#include "strata/tools/commands/arguments.h"
#include "strata/tools/commands/commands.h"
#include "strata/tools/peers/registry.h"
#include "strata/tools/readers/trace_reader.h"
#include "strata/tools/replay/recordings.h"
#include "strata/tools/replay/replay_report.h"
#include "strata/tools/replay/replay_session.h"
#include "strata/tools/replay/strategy_list.h"

namespace strata::tools {
namespace {

constexpr const char* kReplayUsage =
    R"(usage: strata replay TRACE… [flags]

Replays recorded allocations on a simulated device. Shows for each trace and
strategy the memory that it acquires from the device.

TRACE is one of these, plain or compressed by gzip:
  - a memory snapshot of PyTorch, from torch.cuda.memory._dump_snapshot
  - a log of RMM's logging_resource_adaptor (columns Action, Pointer, Size and
    Stream), or a trace recorded with --strata_trace_file
  - a replay log of Umpire, from UMPIRE_REPLAY=On

  --allocator_strategy=A,B,…  strategies to compare (default: auto), and
                              peers, which are reimplementations of other
                              allocators (docs/peers.md; no flag changes them):
                              %s
                              peer:pytorch:KEY=VALUE,KEY=VALUE,… accepts these
                              switches of PYTORCH_CUDA_ALLOC_CONF:
                              max_split_size_mb, roundup_power2_divisions,
                              garbage_collection_threshold,
                              per_process_memory_fraction, expandable_segments
  --strata_sim_memory=SIZE    memory of the device (default: as the recorded
                              device if a snapshot contains it, else 80GiB)
  --fit                       search the smallest device that each trace fits on
  --passes=N                  replay each trace N times in the same allocator,
                              with the live blocks freed at the end of a pass,
                              and compare the first pass and the last one; the
                              device of --fit runs all of them
  --jitter=P%%                 vary each size by up to P %% up or down, at most 50,
                              from the second pass on; every strategy gets the
                              same sizes
  --wide                      show all columns of the table
  --format=table|json         for people (default) or programs
  --strict                    refuse a file with a row that cannot be used
  --trace_device=N            the device of a snapshot (default: the first that
                              has entries)
  --streams=N                 put the operations of the n-th stream on stream n
                              modulo N; the default stream is number 0
  --work_ns=N                 add work of N ns to the stream of each allocation,
                              and a query of the stream after each operation,
                              which takes 430 ns; see --strata_sim_progress
  --check=false               do not check the blocks (no overlap, large enough)

Every other flag that `strata info` lists works too.

Columns of the table (* with --wide only):
%s
A row that cannot be used is skipped, counted and named in a warning. Above 1 %%
of the rows the heading says that the result may be wrong. A request that ran out
of memory when it was recorded is tried again, and freed at once. An
empty_cache() of the recorded program releases idle memory in the replay, too.
Streams 0 and 1 are both the default stream, as cudaStreamLegacy is 1. Places in
a snapshot are entries of the device, counted from 1.

Ctrl-C ends the command and prints the completed rows.
Exit code: 0; 1 if a strategy ran out of memory where the recorded program did
not; 2 if a file could not be read or replayed (the others are); 3 if a result
may be wrong. Of several the first of 2, 3, 1 counts; 130 after Ctrl-C.
)";

std::string PeersForHelp() {
  std::string names;
  for (const std::string& name : peers::PeerNames()) {
    names += (names.empty() ? "" : ",\n                              ") + name;
  }
  return names;
}

// Nothing if the argument is missing.
std::optional<std::uint64_t> TakeNumber(Arguments& arguments,
                                        const std::string& name,
                                        const char* meaning) {
  const std::optional<std::string> given = arguments.TakeText(name);
  if (!given) return std::nullopt;
  if (const auto number = ParseNumber<std::uint64_t>(*given)) return number;
  throw std::invalid_argument("--" + name + ": '" + *given + "' is not " +
                              meaning);
}

TraceReaderOptions TakeReaderOptions(Arguments& arguments) {
  TraceReaderOptions options;
  options.device =
      TakeNumber(arguments, "trace_device", "the number of a device");
  options.strict = arguments.TakeBool("strict", false);
  return options;
}

// The row must be named after the strategy that runs: apply the environment.
void NameByEnvironment(std::vector<Options>& all) {
  for (Options& options : all) {
    if (!options.host.tf_environment ||
        peers::IsPeerName(options.allocator_strategy)) {
      continue;
    }
    const std::string asked = options.Strategy();
    options.allocator_strategy = WithProcessEnvironment(options).Strategy();
    if (all.size() > 1 && options.allocator_strategy != asked) {
      throw std::invalid_argument(
          "--strata_tf_environment: the environment has " +
          options.allocator_strategy + " run for --allocator_strategy=" +
          asked + "; give one strategy, or leave out the environment");
    }
  }
}

std::vector<Options> ReplayOptions() {
  std::vector<Options> all = OptionsPerStrategyOrPeer();
  for (Options& options : all) {
    std::string& platform = options.platform.platform;
    if (platform != "auto" && platform != "sim") {
      throw std::invalid_argument("strata_platform: replay runs on sim, not '" +
                                  platform + "'");
    }
    platform = "sim";
  }
  NameByEnvironment(all);
  for (Options& options : all) {
    // Throws if an option of the platform is wrong.
    const SimPlatform probe(options.platform);
  }
  return all;
}

// A peer has no layers, so the files of these options would not be written.
void RequireLayers(const Options& options) {
  if (!peers::IsPeerName(options.allocator_strategy)) return;
  Options recorded_by_layers = options;
  recorded_by_layers.platform.device_trace_path.clear();
  RequireNoRecording(recorded_by_layers,
                     options.allocator_strategy + " has no layer that records");
}

// A run must not overwrite the traces, nor the recordings of an earlier run.
void RequireRecordings(const std::vector<Options>& strategies,
                       const std::vector<std::string>& traces) {
  for (const Options& options : strategies) {
    RequireLayers(options);
    ForEachRecording(options,
                     [&](std::string_view flag, const std::string& path) {
                       RequireOtherFile(flag, path, traces);
                     });
    if (traces.size() * strategies.size() > 1) {
      RequireNoRecording(options,
                         "replay records one trace on one strategy at a time");
    }
  }
}

// "5%" or "2.5" as millionths.
std::uint32_t ParsePercent(const std::string& text) {
  std::string_view number = text;
  if (number.ends_with('%')) number.remove_suffix(1);
  const auto refuse = [&](const char* why) {
    throw std::invalid_argument("--jitter: '" + text + "' " + why);
  };
  const bool has_digit =
      number.find_first_of("0123456789") != std::string_view::npos;
  const std::size_t point = number.find('.');
  if (!has_digit ||
      number.find_first_not_of("0123456789.") != std::string_view::npos ||
      (point != std::string_view::npos &&
       number.find('.', point + 1) != std::string_view::npos)) {
    refuse("is not a percentage");
  }
  const double ppm = std::stod(std::string(number)) * 10'000;
  if (ppm > kMostJitterPpm) refuse("is above 50 %");
  return static_cast<std::uint32_t>(std::lround(ppm));
}

PassPlan TakePassPlan(Arguments& arguments) {
  PassPlan plan;
  const auto passes = TakeNumber(arguments, "passes", "a number of passes");
  if (passes == std::uint64_t{0}) {
    throw std::invalid_argument("--passes: '0' is not a number of passes");
  }
  plan.passes = passes.value_or(0);
  const auto jitter = arguments.TakeText("jitter");
  if (!jitter) return plan;
  plan.jitter_ppm = ParsePercent(*jitter);
  if (!passes) {
    throw std::invalid_argument(
        "--jitter needs --passes: sizes vary from pass "
        "to pass");
  }
  return plan;
}

ReplayRequest TakeRequest(Arguments& arguments) {
  ReplayRequest request;
  request.settings.plan = TakePassPlan(arguments);
  request.settings.fit = arguments.TakeBool("fit", false);
  request.settings.check = arguments.TakeBool("check", true);
  request.wide = arguments.TakeBool("wide", false);
  request.reader = TakeReaderOptions(arguments);
  request.streams = TakeNumber(arguments, "streams", "a number of streams")
                        .value_or(TraceEvent::kMaxStreams);
  if (request.streams == 0) {
    throw std::invalid_argument("--streams: '0' is not a number of streams");
  }
  request.work_ns =
      TakeNumber(arguments, "work_ns", "a time in ns").value_or(0);
  request.as_json =
      arguments.TakeChoice("format", "table", {"table", "json"}) == "json";
  request.paths = arguments.ParseFlags();
  if (request.paths.empty()) {
    throw std::invalid_argument(
        "replay: no trace given; see strata replay --help");
  }
  request.strategies = ReplayOptions();
  RequireRecordings(request.strategies, request.paths);
  return request;
}

}  // namespace

int RunReplay(int argc, char** argv) {
  Arguments arguments(argc, argv);
  if (arguments.TakeHelp()) {
    std::printf(kReplayUsage, PeersForHelp().c_str(), ColumnsForHelp().c_str());
    return 0;
  }
  return RunReplays(TakeRequest(arguments));
}

}  // namespace strata::tools
