#ifndef STRATA_TOOLS_REPLAY_ROW_H_
#define STRATA_TOOLS_REPLAY_ROW_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "strata/facade/options.h"
#include "strata/tools/fit.h"
#include "strata/tools/replay.h"
#include "strata/tools/trace.h"

namespace strata {

// One trace under one strategy: a row of `strata replay`.
struct ReplayRow {
  std::string trace;  // path
  std::string strategy;
  std::uint64_t operations = 0;
  std::uint64_t failures_skipped = 0;
  std::uint64_t peak_live_bytes = 0;
  std::uint64_t capacity_bytes = 0;  // of the device
  ReplayResult result;
  std::optional<std::uint64_t> failed_line;  // if result.failed_event
  Trace::Unit unit = Trace::Unit::kLine;     // that failed_line counts
  std::string failed_where;                  // Trace::Where, or empty
  std::optional<double> ns_per_op;           // nothing if a run failed
  bool has_fit = false;                      // whether a fit was asked for
  std::optional<Fit> fit;                    // nothing: none was found

  // Peak reserved over peak live bytes; nothing if that says nothing: a run
  // that failed, or no bytes at all.
  std::optional<double> ReservedRatio() const;
  std::optional<double> FitRatio() const;
};

struct ReplaySettings {
  bool check = true;  // whether to look at every block, in a run of its own
  bool fit = false;
};

// Does the runs of one row: the checking pass, the timing pass and the fit.
// `progress` is told what is being done.
//
// Errors: as Replay.
ReplayRow MakeReplayRow(
    const Trace& trace, const Options& options, const ReplaySettings& settings,
    const std::function<void(const std::string&)>& progress);

// An array of objects, with a line end.
std::string ToJson(const std::vector<ReplayRow>& rows);
// For people.
std::string ToTable(const std::vector<ReplayRow>& rows);

}  // namespace strata

#endif  // STRATA_TOOLS_REPLAY_ROW_H_
