#ifndef STRATA_TOOLS_REPLAY_REPLAY_REPORT_H_
#define STRATA_TOOLS_REPLAY_REPLAY_REPORT_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "strata/tools/replay/replay_row.h"

namespace strata::tools {

// The replays of one trace.
struct TraceReport {
  TraceFacts trace;
  std::uint64_t device_bytes = 0;   // of the simulated device
  bool is_default_device = false;   // 80 GiB, as the recorded size is unknown
  bool is_recorded_device = false;  // as large as the recorded one
  bool has_limit = false;           // a flag limits the memory of strategies
  std::uint64_t limit_bytes = 0;    // such a limit of any strategy; 0: none
  std::vector<ReplayRow> rows;      // row of the recorded program first
  // Strategies other than those of `rows` that serve all requests; searched
  // only if none of `rows` does.
  std::vector<std::string> alternatives;

  // The most bytes that can be live at a time.
  std::uint64_t MostLiveBytes() const {
    return limit_bytes != 0 ? std::min(device_bytes, limit_bytes)
                            : device_bytes;
  }
};

// All rows, as an array of objects with a line end.
std::string ToJson(const std::vector<TraceReport>& reports);

// Readable text: a heading, the table and a sentence. Lines of heading and
// table have at most 80 characters, unless `wide` requests all columns, or a
// path or the name of a strategy is longer.
//
// `name` names the trace in the heading.
std::string ToText(const TraceReport& report, const std::string& name,
                   bool wide);

// The meaning of each column of the table, for --help.
std::string ColumnsForHelp();

// The names of traces in headings: "resnet50_train" for
// "traces/resnet50_train.csv.gz", or the path if two traces would have the same
// name.
std::vector<std::string> NamesOf(const std::vector<std::string>& paths);

// One sentence: the strategies that run or fail, and the one that serves all
// requests, or the smallest fit and its difference. Without a name and without
// a line end.
std::string Summary(const TraceReport& report);

}  // namespace strata::tools

#endif  // STRATA_TOOLS_REPLAY_REPLAY_REPORT_H_
