#ifndef STRATA_TOOLS_REPLAY_REPLAY_ROW_H_
#define STRATA_TOOLS_REPLAY_REPLAY_ROW_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "strata/facade/options.h"
#include "strata/tools/replay/fit.h"
#include "strata/tools/replay/replay.h"
#include "strata/tools/trace/skip_log.h"
#include "strata/tools/trace/trace.h"

namespace strata::tools {

// The facts of a trace for rows and headings, without its operations.
struct TraceFacts {
  TraceFacts() = default;
  explicit TraceFacts(const Trace& trace);

  std::string path;
  Trace::Unit unit = Trace::Unit::kLine;
  std::uint64_t operations = 0;
  std::uint64_t failures_skipped = 0;
  std::uint64_t peak_live_bytes = 0;
  std::uint64_t releases = 0;
  // Number of requests that failed when they were recorded; line and size of
  // the first one.
  std::uint64_t tries = 0;
  std::uint64_t first_try_line = 0;
  std::uint64_t first_try_bytes = 0;
  std::uint64_t recorded_peak_bytes = 0;    // reserved; 0: unknown
  std::uint64_t recorded_device_bytes = 0;  // 0: unknown
  SkipLog skipped;
};

// The strategy or peer that `options` select on their simulated device.
std::string ReplayedStrategy(const Options& options);

// One trace under one strategy: a row of `strata replay`.
struct ReplayRow {
  TraceFacts trace;
  std::string strategy;
  bool is_auto = false;      // --allocator_strategy=auto chose the strategy
  bool is_recorded = false;  // row of the recorded program: no replay
  std::uint64_t device_bytes = 0;  // of the device; 0: unknown
  ReplayResult result;
  std::optional<std::uint64_t> failed_line;  // if result.failed_event
  std::string failed_where;                  // Trace::Where, or empty
  std::optional<double> ns_per_op;           // nothing if a run failed
  std::uint64_t passes = 0;                  // requested passes; 0: none
  std::uint32_t jitter_ppm = 0;              // variation of their sizes
  bool has_fit = false;                      // a fit was requested
  std::optional<Fit> fit;                    // nothing: no fit found

  // "auto (virtual_memory)" where auto chose the strategy.
  std::string Name() const;
  // Peak reserved over peak live bytes. Nothing if that has no meaning: the run
  // did not serve all requests, or there were no bytes.
  std::optional<double> ReservedRatio() const;
  std::optional<double> FitRatio() const;
  // The last completed pass; null if there is none.
  const PassSample* LastPass() const {
    return result.passes.empty() ? nullptr : &result.passes.back();
  }
};

struct ReplaySettings {
  bool check = true;  // check every block, in a separate run
  bool fit = false;
  PassPlan plan = {};
};

// Performs the runs of one row: the checked run, the timed runs and the fit.
// Timed runs have one pass. Calls `progress` with a description of each step.
//
// Errors: as Replay.
ReplayRow MakeReplayRow(
    const Trace& trace, const Options& options, const ReplaySettings& settings,
    const std::function<void(const std::string&)>& progress);

// The row of the recorded program; nothing if the trace does not contain its
// reserved bytes.
std::optional<ReplayRow> MakeRecordedRow(const Trace& trace,
                                         const ReplaySettings& settings);

// Whether a strategy serves every request of the passes of `plan`: one replay,
// without messages. False if it cannot run with these options.
bool ServesQuietly(const Trace& trace, const Options& options,
                   const PassPlan& plan);

}  // namespace strata::tools

#endif  // STRATA_TOOLS_REPLAY_REPLAY_ROW_H_
