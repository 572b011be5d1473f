#ifndef STRATA_TOOLS_REPLAY_REPLAY_SESSION_H_
#define STRATA_TOOLS_REPLAY_REPLAY_SESSION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "strata/facade/options.h"
#include "strata/tools/readers/trace_reader.h"
#include "strata/tools/replay/replay_row.h"
#include "strata/tools/trace/trace.h"

namespace strata::tools {

// The arguments of `strata replay`.
struct ReplayRequest {
  ReplaySettings settings;
  TraceReaderOptions reader;
  std::uint64_t streams = TraceEvent::kMaxStreams;
  std::uint64_t work_ns = 0;
  bool as_json = false;
  bool wide = false;
  std::vector<std::string> paths;
  std::vector<Options> strategies;
};

// Replays the traces of `request` in order. Prints the rows of each trace when
// it is done, or all at the end as JSON. A trace that cannot be used does not
// affect the results of others. Ctrl-C ends the session after printing the
// completed rows. Returns the exit code (replay --help).
//
// Errors: std::invalid_argument for an option that is wrong.
int RunReplays(const ReplayRequest& request);

}  // namespace strata::tools

#endif  // STRATA_TOOLS_REPLAY_REPLAY_SESSION_H_
