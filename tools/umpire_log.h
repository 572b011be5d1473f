#ifndef STRATA_TOOLS_UMPIRE_LOG_H_
#define STRATA_TOOLS_UMPIRE_LOG_H_

#include "strata/tools/input_buffer.h"
#include "strata/tools/trace.h"

namespace strata {

// Reads a replay log of Umpire (UMPIRE_REPLAY=On): one JSON object per line, of
// the form with "event" and "payload" (to version 6) or with "category" and
// "name" (since). Lines that begin with # and blank lines are passed over, and
// so are events other than the making of allocators, allocate and deallocate.
//
// Model: an allocator's memory is that of the resource it was made on, directly
//   or through others. The rows of one resource are kept: of the first DEVICE
//   that memory was taken from, or of the first resource at all if there is no
//   such; the rest are counted. Umpire logs no streams: all are the default
//   one. A block of no bytes may share its address with others. Where each call
//   is logged twice, the line with the result counts, and calls without one are
//   failures. Of several processes (uid) the first is read. Lines that are no
//   such object, or contradict others, are skipped (TraceBuilder).
// Errors: TraceError; with `strict`, also for a line that would be skipped.
// Cost: that of parsing JSON, about a microsecond per line.
Trace ReadUmpireLog(InputBuffer& input, bool strict = false);

}  // namespace strata

#endif  // STRATA_TOOLS_UMPIRE_LOG_H_
