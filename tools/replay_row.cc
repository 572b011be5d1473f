#include "strata/tools/replay_row.h"

#include <glog/logging.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "strata/tools/recordings.h"

namespace strata {
namespace {

constexpr int kLeastRepetitions = 3;
constexpr int kMostRepetitions = 200;
// Short runs are repeated for this long: the minimum of many is steadier.
constexpr std::uint64_t kTimingNs = 300'000'000;

// While it lives, nothing is logged: not again what a first run has said. With
// --v, all of it.
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

// The fastest of several runs, `first` counted if it was not checked.
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

std::optional<double> ReplayRow::ReservedRatio() const {
  if (result.failed_event) return std::nullopt;
  return Ratio(result.peak_reserved_bytes, peak_live_bytes);
}

std::optional<double> ReplayRow::FitRatio() const {
  if (!fit) return std::nullopt;
  return Ratio(fit->capacity_bytes, peak_live_bytes);
}

ReplayRow MakeReplayRow(
    const Trace& trace, const Options& options, const ReplaySettings& settings,
    const std::function<void(const std::string&)>& progress) {
  ReplayRow row;
  row.trace = trace.path;
  row.unit = trace.unit;
  row.strategy = options.Strategy();
  row.operations = trace.events.size();
  row.failures_skipped = trace.failures_skipped;
  row.peak_live_bytes = trace.peak_live_bytes;
  row.capacity_bytes = options.platform.sim_memory_bytes;

  const std::string who = trace.path + ", " + row.strategy;
  progress(who + (settings.check ? ": checking" : ": replaying"));
  row.result =
      settings.check ? CheckedReplay(trace, options) : Replay(trace, options);
  if (settings.fit && row.result.has_managed_memory) {
    throw std::invalid_argument(
        "--fit: " + row.strategy +
        " has managed memory, which no device is too small for");
  }
  // The first run wrote the recording, if one was asked for.
  const Options quiet = WithoutRecordings(options);
  const QuietLog quiet_log;
  if (row.result.failed_event) {
    row.failed_line = trace.LineOf(*row.result.failed_event);
    row.failed_where = trace.Where(*row.result.failed_event);
  } else {
    progress(who + ": timing");
    std::optional<std::uint64_t> first_ns;
    if (!settings.check) first_ns = row.result.elapsed_ns;
    row.ns_per_op = TimePerOperation(trace, quiet, first_ns);
  }
  row.has_fit = settings.fit;
  if (settings.fit) {
    const std::uint64_t enough_bytes = row.result.failed_event
                                           ? trace.peak_live_bytes
                                           : row.result.peak_reserved_bytes;
    row.fit = FindFit(trace, quiet, enough_bytes, [&](int replays) {
      progress(who + ": fit, replay " + std::to_string(replays + 1));
    });
  }
  return row;
}

}  // namespace strata
