#ifndef STRATA_TOOLS_RMM_LOG_H_
#define STRATA_TOOLS_RMM_LOG_H_

#include <string>

#include "strata/tools/input_buffer.h"
#include "strata/tools/trace.h"

namespace strata {

// Reads a log of RMM's logging_resource_adaptor, or a trace that Strata wrote
// (--strata_trace_file), plain or compressed by gzip.
//
// Model: CSV whose first line names the columns; Thread, Time, Action, Pointer,
//   Size and Stream are needed, in any order. Thread and Time are not looked
//   at. Pointers and streams are decimal or, with 0x, hexadecimal. An
//   "allocate failure" is counted and skipped. A free's size may be 0 or differ
//   from its allocate's; that is counted. With a column Place, only the rows of
//   the first device named there are kept.
// Errors: TraceError.
// Cost: about 12 bytes per row, and 16 to 32 bytes per block live at the peak.
Trace ReadRmmLog(InputBuffer& input);
Trace ReadRmmLog(const std::string& path);

}  // namespace strata

#endif  // STRATA_TOOLS_RMM_LOG_H_
