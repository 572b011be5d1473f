#ifndef STRATA_TOOLS_READERS_TRACE_READER_H_
#define STRATA_TOOLS_READERS_TRACE_READER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "strata/tools/readers/input_buffer.h"
#include "strata/tools/trace/trace.h"

namespace strata::tools {

struct TraceReaderOptions {
  // The device to read in a file with several; nothing: the first.
  std::optional<std::uint64_t> device;
  // Treat a part of the file that would be skipped as an error.
  bool strict = false;
};

// Reads a trace of any known format, plain or compressed by gzip. The content
// determines the format: a pickle is a snapshot of PyTorch, lines of JSON are a
// log of Umpire, and all other text is an RMM log.
//
// Errors: TraceError; for a file of another kind it names the kind
//   (file_kind.h).
Trace ReadTrace(InputBuffer& input, const TraceReaderOptions& options);
Trace ReadTrace(const std::string& path, const TraceReaderOptions& options);

// Adds to `log` the trailing bytes after the gzip data of `input`, which was
// read to its end, and the row that was lost if that data is cut off.
//
// Errors: with `strict`, TraceError if there are such bytes or such a row.
void CountInput(const InputBuffer& input, bool strict, SkipLog* log);

}  // namespace strata::tools

#endif  // STRATA_TOOLS_READERS_TRACE_READER_H_
