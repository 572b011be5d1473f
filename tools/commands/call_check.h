#ifndef STRATA_TOOLS_COMMANDS_CALL_CHECK_H_
#define STRATA_TOOLS_COMMANDS_CALL_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "strata/platform/check/hazard_report.h"
#include "strata/tools/readers/input_buffer.h"
#include "strata/tools/trace/skip_log.h"

namespace strata::tools {

// The hazards in one trace of device calls.
struct CheckedCalls {
  std::string path;
  std::uint64_t calls = 0;
  std::uint64_t hazards = 0;
  std::vector<check::HazardReport> reports;  // the first hazards
  SkipLog skipped;
  // Calls that follow skipped lines, ascending.
  struct LineJump {
    std::uint64_t call;  // from 1
    std::uint64_t line;
  };
  std::vector<LineJump> line_jumps;

  // The line of call number `call`, counted from 1.
  std::uint64_t LineOf(std::uint64_t call) const;
};

// Checks a trace of device calls (--strata_device_trace_file) for hazards.
//
// Model: a line that is no known call is skipped, as if the program had not
//   made the call.
// Errors: TraceError: the file cannot be read, or is no such trace; with
//   `strict`, also for a line that would be skipped.
CheckedCalls CheckCalls(InputBuffer& input, bool strict);

}  // namespace strata::tools

#endif  // STRATA_TOOLS_COMMANDS_CALL_CHECK_H_
