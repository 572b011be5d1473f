#ifndef STRATA_TOOLS_READERS_UMPIRE_LOG_H_
#define STRATA_TOOLS_READERS_UMPIRE_LOG_H_

#include "strata/tools/readers/input_buffer.h"
#include "strata/tools/trace/trace.h"

namespace strata::tools {

// Reads a replay log of Umpire (UMPIRE_REPLAY=On): one JSON object per line,
// with "event" and "payload" (up to version 6) or with "category" and "name"
// (later). Blank lines and lines that begin with # are skipped without a count.
// So are all events except the creation of allocators, allocate and deallocate.
//
// Model: an allocator's memory belongs to the resource on which it was created,
//   directly or through other allocators. Only the rows of one resource are
//   used: the first DEVICE from which memory was allocated, or else the first
//   resource of any kind. The rest are counted. Umpire logs no streams: all
//   rows are on the default stream. A block of 0 bytes may share its address
//   with others. Where each call is logged twice, the line with the result
//   counts, and a call without a result is a failure. Of several processes
//   (uid) the first is read. Lines that are no such object, or contradict
//   others, are skipped (TraceBuilder).
// Errors: TraceError; with `strict`, also for a line that would be skipped.
// Cost: parsing JSON, about a microsecond per line.
Trace ReadUmpireLog(InputBuffer& input, bool strict = false);

}  // namespace strata::tools

#endif  // STRATA_TOOLS_READERS_UMPIRE_LOG_H_
