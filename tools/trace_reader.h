#ifndef STRATA_TOOLS_TRACE_READER_H_
#define STRATA_TOOLS_TRACE_READER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "strata/tools/input_buffer.h"
#include "strata/tools/trace.h"

namespace strata {

struct TraceReaderOptions {
  // Of a file that has several, whose operations; nothing: the first's.
  std::optional<std::uint64_t> device;
  // Whether a part of the file that would be skipped is an error.
  bool strict = false;
};

// Reads a trace of any known form, plain or compressed by gzip. The content
// tells which form it is: a pickle is a snapshot of PyTorch, lines of JSON are
// a log of Umpire, and the rest is an RMM log.
//
// Errors: TraceError; of a file of another kind it says which (file_kind.h).
Trace ReadTrace(InputBuffer& input, const TraceReaderOptions& options);
Trace ReadTrace(const std::string& path, const TraceReaderOptions& options);

// Adds the bytes of `input`, which was read to its end, to `log`, those behind
// its gzip data, and the row that was lost where that data is cut off.
//
// Errors: with `strict`, TraceError if there are such bytes or such a row.
void CountInput(const InputBuffer& input, bool strict, SkipLog* log);

}  // namespace strata

#endif  // STRATA_TOOLS_TRACE_READER_H_
