#ifndef STRATA_TOOLS_REPLAY_REPORT_H_
#define STRATA_TOOLS_REPLAY_REPORT_H_

#include <string>
#include <vector>

#include "strata/tools/replay_row.h"

namespace strata {

// The replays of one trace.
struct TraceReport {
  TraceFacts trace;
  std::uint64_t device_bytes = 0;   // of the simulated device
  bool is_default_device = false;   // of 80 GiB, as its size is unknown
  bool is_recorded_device = false;  // as large as the recorded one
  bool has_limit = false;           // a flag limits what strategies hold
  std::vector<ReplayRow> rows;      // the recorded program's first
  // Strategies beside those of `rows` that serve all; looked for only if none
  // of `rows` does.
  std::vector<std::string> alternatives;
};

// All rows, as an array of objects with a line end.
std::string ToJson(const std::vector<TraceReport>& reports);

// For people: a heading, the table and a sentence. Lines of heading and table
// have at most 80 characters, unless `wide` asks for all columns or a path or
// the name of a strategy is longer.
//
// `name` names the trace in the heading.
std::string ToText(const TraceReport& report, const std::string& name,
                   bool wide);

// The meaning of each column of the table, for --help.
std::string ColumnsForHelp();

// The names of traces in headings: "resnet50_train" for
// "traces/resnet50_train.csv.gz", or the path where a name would be of two.
std::vector<std::string> NamesOf(const std::vector<std::string>& paths);

// One sentence: which strategies run or fail, and which one serves all, or fits
// on how much less. Without a name and without a line end.
std::string Summary(const TraceReport& report);

}  // namespace strata

#endif  // STRATA_TOOLS_REPLAY_REPORT_H_
