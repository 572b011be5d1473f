#ifndef STRATA_TOOLS_TRACE_TRACE_WARNINGS_H_
#define STRATA_TOOLS_TRACE_TRACE_WARNINGS_H_

#include <string>

#include "strata/tools/trace/skip_log.h"
#include "strata/tools/trace/trace.h"

namespace strata::tools {

// Reports on stderr how a trace was read: a line for each kind of skipped rows,
// and for each fact that changes the result.
void Warn(const Trace& trace);

// One line for each kind in `log`, about the file at `path`.
void WarnOfSkipped(const std::string& path, Trace::Unit unit,
                   const SkipLog& log);

}  // namespace strata::tools

#endif  // STRATA_TOOLS_TRACE_TRACE_WARNINGS_H_
