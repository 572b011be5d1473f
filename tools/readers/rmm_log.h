#ifndef STRATA_TOOLS_READERS_RMM_LOG_H_
#define STRATA_TOOLS_READERS_RMM_LOG_H_

#include <string>

#include "strata/tools/readers/input_buffer.h"
#include "strata/tools/trace/trace.h"

namespace strata::tools {

// Reads a log of RMM's logging_resource_adaptor, or a trace that Strata wrote
// (--strata_trace_file), plain or compressed by gzip.
//
// Model: CSV. The first line names the columns, in any order. Action, Pointer
//   and Size are required. Without Stream, all rows are on the default stream.
//   Actions are
//     allocate          a block of Size bytes at Pointer.
//     free              the free of a block; its Size may be 0 or differ, which
//                       is counted.
//     allocate failure  a request of Size bytes that failed (Trace: a try).
//     release           the program returned idle memory to the system; no
//                       other column is read.
//   HandleColumn parses Pointer and Stream. With a column Place, only the rows
//   of the first device named there are used. Other lines and contradictions
//   are skipped (TraceBuilder).
// Errors: TraceError; with `strict`, also for a row that would be skipped.
// Cost: about 12 bytes per row, and 16 to 32 bytes per block live at the peak.
Trace ReadRmmLog(InputBuffer& input, bool strict = false);
Trace ReadRmmLog(const std::string& path);

}  // namespace strata::tools

#endif  // STRATA_TOOLS_READERS_RMM_LOG_H_
