#include "strata/tools/replay/replay_row.h"

#include <glog/logging.h>

#include <algorithm>
#include <stdexcept>

#include "strata/allocation/error.h"
#include "strata/facade/settings/auto_strategy.h"
#include "strata/platform/sim/device/sim_platform.h"
#include "strata/tools/replay/recordings.h"

namespace strata::tools {
namespace {

constexpr int kLeastRepetitions = 3;
constexpr int kMostRepetitions = 200;
// Short runs are repeated for this time: the minimum of many runs is more
// stable.
constexpr std::uint64_t kTimingNs = 300'000'000;

// Suppresses log messages during its lifetime, because the first run logged
// them. No effect with --v.
class QuietLog {
 public:
  QuietLog() {
    if (FLAGS_v <= 0) FLAGS_minloglevel = google::GLOG_FATAL;
  }
  QuietLog(const QuietLog&) = delete;
  QuietLog& operator=(const QuietLog&) = delete;
  ~QuietLog() { FLAGS_minloglevel = before_; }

 private:
  const int before_ = FLAGS_minloglevel;
};

std::optional<double> Ratio(std::uint64_t bytes, std::uint64_t live_bytes) {
  if (live_bytes == 0) return std::nullopt;
  return static_cast<double>(bytes) / static_cast<double>(live_bytes);
}

// The fastest of several runs, including `first` if that was not checked.
double TimePerOperation(const Trace& trace, const Options& options,
                        std::optional<std::uint64_t> first_ns) {
  std::uint64_t best_ns = first_ns.value_or(UINT64_MAX);
  std::uint64_t total_ns = first_ns.value_or(0);
  int done = first_ns ? 1 : 0;
  while (done < kLeastRepetitions ||
         (done < kMostRepetitions && total_ns < kTimingNs)) {
    const std::uint64_t elapsed_ns = Replay(trace, options).elapsed_ns;
    best_ns = std::min(best_ns, elapsed_ns);
    total_ns += elapsed_ns;
    ++done;
  }
  return static_cast<double>(best_ns) /
         static_cast<double>(trace.events.size());
}

}  // namespace

TraceFacts::TraceFacts(const Trace& trace)
    : path(trace.path),
      unit(trace.unit),
      operations(trace.events.size()),
      failures_skipped(trace.failures_skipped),
      peak_live_bytes(trace.peak_live_bytes),
      releases(trace.releases),
      tries(trace.tries),
      recorded_peak_bytes(trace.recorded.peak_reserved_bytes),
      recorded_device_bytes(trace.recorded.device_bytes),
      skipped(trace.skipped) {
  if (tries == 0) return;
  const auto first =
      std::find_if(trace.events.begin(), trace.events.end(),
                   [](TraceEvent event) { return event.is_try(); });
  const auto index = first - trace.events.begin();
  first_try_line = trace.LineOf(static_cast<std::size_t>(index));
  const auto requests =
      std::count_if(trace.events.begin(), first,
                    [](TraceEvent event) { return event.is_allocate(); });
  first_try_bytes = trace.allocated_bytes[static_cast<std::size_t>(requests)];
}

std::optional<double> ReplayRow::ReservedRatio() const {
  if (!is_recorded && !ServesAll(result)) return std::nullopt;
  if (is_recorded && trace.tries != 0) return std::nullopt;
  return Ratio(result.peak_reserved_bytes, trace.peak_live_bytes);
}

std::string ReplayedStrategy(const Options& options) {
  SimPlatform probe(options.platform);
  return StrategyOn(options, probe.device(0).caps(), PlaceKind::kDevice);
}

std::string ReplayRow::Name() const {
  return is_auto ? "auto (" + strategy + ")" : strategy;
}

std::optional<double> ReplayRow::FitRatio() const {
  if (!fit) return std::nullopt;
  return Ratio(fit->capacity_bytes, trace.peak_live_bytes);
}

ReplayRow MakeReplayRow(
    const Trace& trace, const Options& options, const ReplaySettings& settings,
    const std::function<void(const std::string&)>& progress) {
  ReplayRow row;
  row.trace = TraceFacts(trace);
  row.strategy = ReplayedStrategy(options);
  row.is_auto = options.Strategy() == kAutoStrategy;
  row.device_bytes = options.platform.sim_memory_bytes;

  const std::string who = trace.path + ", " + row.Name();
  const std::string doing =
      who + (settings.check ? ": checking" : ": replaying");
  progress(doing);
  row.passes = settings.plan.passes;
  row.jitter_ppm = settings.plan.jitter_ppm;
  PassPlan plan = settings.plan;
  plan.on_pass = [&](std::uint64_t pass) {
    progress(doing + ", pass " + std::to_string(pass) + " of " +
             std::to_string(plan.passes));
  };
  row.result = settings.check ? CheckedReplay(trace, options, plan)
                              : Replay(trace, options, plan);
  if (settings.fit && row.result.has_managed_memory) {
    throw std::invalid_argument(
        "--fit: " + row.strategy +
        " has managed memory, which no device is too small for");
  }
  // The first run wrote the recording, if one was requested.
  const Options quiet = WithoutRecordings(options);
  const QuietLog quiet_log;
  if (row.result.failed_event) {
    row.failed_line = trace.LineOf(*row.result.failed_event);
    row.failed_where = trace.Where(*row.result.failed_event);
    if (row.result.failed_pass > 1) {
      row.failed_where += ", pass " + std::to_string(row.result.failed_pass);
    }
  } else {
    progress(who + ": timing");
    std::optional<std::uint64_t> first_ns;
    if (!settings.check && row.passes == 0) first_ns = row.result.elapsed_ns;
    row.ns_per_op = TimePerOperation(trace, quiet, first_ns);
  }
  row.has_fit = settings.fit;
  if (settings.fit) {
    const std::uint64_t enough_bytes = ServesAll(row.result)
                                           ? row.result.peak_reserved_bytes
                                           : trace.peak_live_bytes;
    row.fit = FindFit(
        trace, quiet, enough_bytes,
        [&](int replays) {
          progress(who + ": fit, replay " + std::to_string(replays + 1));
        },
        settings.plan);
  }
  return row;
}

std::optional<ReplayRow> MakeRecordedRow(const Trace& trace,
                                         const ReplaySettings& settings) {
  if (trace.recorded.peak_reserved_bytes == 0) return std::nullopt;
  ReplayRow row;
  row.trace = TraceFacts(trace);
  row.strategy = "recorded";
  row.is_recorded = true;
  row.device_bytes = trace.recorded.device_bytes;
  row.result.peak_reserved_bytes = trace.recorded.peak_reserved_bytes;
  row.result.failed_tries = trace.tries;
  row.has_fit = settings.fit;
  row.passes = settings.plan.passes;
  return row;
}

bool ServesQuietly(const Trace& trace, const Options& options,
                   const PassPlan& plan) {
  const QuietLog quiet_log;
  try {
    return ServesAll(Replay(trace, WithoutRecordings(options), plan));
  } catch (const std::invalid_argument&) {
    return false;  // the other options do not fit this strategy
  } catch (const std::runtime_error&) {
    return false;  // the device does not fit it
  } catch (const BadAlloc&) {
    return false;  // the device cannot hold its initial memory
  }
}

}  // namespace strata::tools
