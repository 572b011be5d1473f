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
};

// Reads a trace of any known form, plain or compressed by gzip. Which form is
// seen from the content: a pickle is a snapshot of PyTorch, lines of JSON are a
// log of Umpire, and the rest is an RMM log.
//
// Errors: TraceError.
Trace ReadTrace(InputBuffer& input, const TraceReaderOptions& options);
Trace ReadTrace(const std::string& path, const TraceReaderOptions& options);

}  // namespace strata

#endif  // STRATA_TOOLS_TRACE_READER_H_
