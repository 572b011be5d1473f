// strata replay: what traces cost under one or several strategies.

#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "strata/facade/flags.h"
#include "strata/facade/tf_environment.h"
#include "strata/platform/function_ref.h"
#include "strata/platform/sim/sim_platform.h"
#include "strata/tools/arguments.h"
#include "strata/tools/commands.h"
#include "strata/tools/peers/registry.h"
#include "strata/tools/progress.h"
#include "strata/tools/recordings.h"
#include "strata/tools/replay_row.h"
#include "strata/tools/trace_reader.h"

namespace strata {
namespace {

constexpr const char* kReplayUsage =
    R"(usage: strata replay TRACE… [flags]

Replays recorded allocations on a simulated device and says, for each trace and
strategy, what they need: the peak of what is live and of what is reserved, the
calls to the driver and the time of one operation.

TRACE is one of these, plain or compressed by gzip:
  - a log of RMM's logging_resource_adaptor (columns Thread, Time, Action,
    Pointer, Size, Stream), or a trace recorded with --strata_trace_file
  - a memory snapshot of PyTorch, from torch.cuda.memory._dump_snapshot
  - a replay log of Umpire, from UMPIRE_REPLAY=On

  --allocator_strategy=A,B,…  strategies to compare (default: auto_growth), and
                              peers: %s,
                              which are the rules of earlier allocators
                              (docs/peers.md); no other flag changes them
  --strata_sim_memory=SIZE    memory of the device (default: 80GiB)
  --trace_device=N            whose entries of a snapshot (default: the first
                              device that has any)
  --streams=N                 put what happened on the n-th stream of the trace
                              on number n modulo N, the default stream being
                              number 0: with 1, what the trace needs without
                              streams
  --work_ns=N                 work of so many modelled ns in the stream of each
                              allocation, and a query of the stream after each
                              event, which takes 250; see --strata_sim_progress
  --fit                       search the smallest device that each trace fits on
  --check=false               do not check the blocks (no overlap, large enough)
  --format=table|json         for people (default) or programs

Every other flag that `strata info` lists works too.
Streams 0 and 1 of a trace are both the default stream, as cudaStreamLegacy is 1.
Places in a snapshot are entries of the device, counted from 1.
Exit code: 0; 1 if a trace ran out of memory; 2 if a trace could not be read or
replayed, and then no result is printed, of the others neither.
)";

std::string PeersForHelp() {
  std::string names;
  for (const std::string& name : PeerNames()) {
    names += (names.empty() ? "" : ",\n                              ") + name;
  }
  return names;
}

// A second bad trace is not worth the minutes that the first one may take.
void CheckReadable(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (access(path.c_str(), R_OK) == 0) continue;
    throw TraceError(path, 0,
                     std::string("cannot be opened: ") + std::strerror(errno));
  }
}

// Nothing if it is not given.
std::optional<std::uint64_t> TakeNumber(Arguments& arguments,
                                        const std::string& name,
                                        const char* meaning) {
  const std::optional<std::string> given = arguments.TakeText(name);
  if (!given) return std::nullopt;
  const std::string& text = *given;
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) {
    throw std::invalid_argument("--" + name + ": '" + text + "' is not " +
                                meaning);
  }
  return number;
}

TraceReaderOptions TakeReaderOptions(Arguments& arguments) {
  TraceReaderOptions options;
  options.device =
      TakeNumber(arguments, "trace_device", "the number of a device");
  return options;
}

// What runs is what a row is named after.
void NameByEnvironment(std::vector<Options>& all) {
  for (Options& options : all) {
    if (!options.host.tf_environment ||
        IsPeerName(options.allocator_strategy)) {
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
  std::vector<Options> all = OptionsPerStrategy(&IsPeerName);
  for (Options& options : all) {
    std::string& platform = options.platform.platform;
    if (platform != "auto" && platform != "sim") {
      throw std::invalid_argument("strata_platform: replay runs on sim, not '" +
                                  platform + "'");
    }
    platform = "sim";
    // Throws if an option of the platform is wrong.
    SimPlatform probe(options.platform);
  }
  NameByEnvironment(all);
  return all;
}

// The files would not be there: a peer has no layers.
void RequireLayers(const Options& options) {
  if (!IsPeerName(options.allocator_strategy)) return;
  Options recorded_by_layers = options;
  recorded_by_layers.platform.device_trace_path.clear();
  RequireNoRecording(recorded_by_layers,
                     options.allocator_strategy + " has no layer that records");
}

// What is read is not written over, nor what one run has recorded by the next.
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

// From here on what a growth asks of other streams is what a replay takes.
constexpr std::size_t kManyStreams = 500;

void Warn(const Trace& trace) {
  const auto warn = [&](std::uint64_t count, const char* what) {
    if (count == 0) return;
    std::fprintf(stderr, "strata: warning: %s: %llu %s\n", trace.path.c_str(),
                 static_cast<unsigned long long>(count), what);
  };
  warn(trace.frees_of_other_size,
       "frees give another size than their allocate, which counts");
  warn(trace.frees_of_other_stream,
       "frees give another stream than their allocate, which counts");
  warn(
      trace.has_both_defaults ? 2 : 0,
      "names of the default stream, 0 and 1: one stream to a driver, and here");
  warn(trace.failures_skipped, "allocate failures are skipped");
  warn(trace.reallocations_skipped,
       "reallocate of host memory are skipped, so its blocks keep their sizes");
  warn(trace.devices_skipped,
       "other devices have entries, which are skipped; --trace_device chooses");
  warn(trace.other_place_rows,
       "rows are skipped: not of the first device's memory");
  warn(trace.blocks_before,
       trace.has_lost_entries
           ? "blocks are allocated first: live before the first entry, as the "
             "ring of entries wrapped and lost the oldest"
           : "blocks are allocated first: live before the first entry, as the "
             "recording began later or its ring wrapped");
  warn(trace.blocks_after,
       "blocks are skipped: allocated after the last entry");
  warn(trace.streams.size() > kManyStreams ? trace.streams.size() : 0,
       "streams, each with memory of its own, take long; --streams folds them");
}

void WarnOfFailure(const ReplayRow& row) {
  if (!row.failed_line) return;
  std::fprintf(stderr, "strata: warning: %s: %s\n", row.failed_where.c_str(),
               row.result.failure.c_str());
}

}  // namespace

int RunReplay(int argc, char** argv) {
  Arguments arguments(argc, argv);
  if (arguments.TakeHelp()) {
    std::printf(kReplayUsage, PeersForHelp().c_str());
    return 0;
  }
  ReplaySettings settings;
  settings.fit = arguments.TakeBool("fit", false);
  settings.check = arguments.TakeBool("check", true);
  const TraceReaderOptions reader_options = TakeReaderOptions(arguments);
  const std::uint64_t streams =
      TakeNumber(arguments, "streams", "a number of streams")
          .value_or(TraceEvent::kMaxStreams);
  if (streams == 0) {
    throw std::invalid_argument("--streams: '0' is not a number of streams");
  }
  const std::uint64_t work_ns =
      TakeNumber(arguments, "work_ns", "a time in ns").value_or(0);
  const bool as_json =
      arguments.TakeChoice("format", "table", {"table", "json"}) == "json";
  const std::vector<std::string> paths = arguments.ParseFlags();
  if (paths.empty()) {
    throw std::invalid_argument(
        "replay: no trace given; see strata replay "
        "--help");
  }
  const std::vector<Options> strategies = ReplayOptions();
  RequireRecordings(strategies, paths);
  CheckReadable(paths);

  // Printed at the end: output that stops at an error is no result.
  std::vector<ReplayRow> rows;
  bool has_failed = false;
  ProgressLine progress;
  for (const std::string& path : paths) {
    progress.Show(path + ": reading");
    Trace trace = ReadTrace(path, reader_options);
    trace.FoldStreams(streams);
    trace.work_ns = work_ns;
    progress.Clear();
    Warn(trace);
    for (const Options& options : strategies) {
      rows.push_back(
          MakeReplayRow(trace, options, settings,
                        [&](const std::string& text) { progress.Show(text); }));
      has_failed = has_failed || rows.back().failed_line;
      progress.Clear();
      WarnOfFailure(rows.back());
    }
  }
  std::fputs((as_json ? ToJson(rows) : ToTable(rows)).c_str(), stdout);
  return has_failed ? 1 : 0;
}

}  // namespace strata
