#ifndef STRATA_PLATFORM_CHECK_CALL_TRACE_READER_H_
#define STRATA_PLATFORM_CHECK_CALL_TRACE_READER_H_

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "strata/platform/calls/call_record.h"

namespace strata::check {

// An error in a recorded call trace: "calls.csv:12: 'x' is no number".
class CallTraceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Parses one line of a call trace (call_trace.h), without its line end.
//
// Errors: std::invalid_argument that describes the fault.
CallRecord ParseCallRecord(std::string_view line);

// Reads the calls of a file that CallTrace has written.
//
// Model: lines end in LF or CRLF. The line number of a call is the number of
//   the call plus one. Blank lines at the end are ignored.
// Errors: CallTraceError if the file cannot be opened or read, if its header is
//   different, or if a line is wrong (for instance cut off). Exceptions of a
//   line source pass through.
// Threads: externally synchronised.
class CallTraceReader {
 public:
  // Returns the next line, without its end and valid until the next call.
  // Returns false after the last line.
  using LineSource = std::function<bool(std::string_view* line)>;

  explicit CallTraceReader(const std::string& path);
  // For lines from another source, for instance a compressed trace. Errors call
  // it `path`.
  CallTraceReader(std::string path, LineSource lines);

  // Reads the next call. Returns false at the end of the file.
  bool Next(CallRecord* record);

 private:
  bool NextLine(std::string_view* line);
  [[noreturn]] void Fail(const std::string& reason) const;

  const std::string path_;
  const LineSource lines_;
  std::uint64_t line_ = 0;
};

}  // namespace strata::check

#endif  // STRATA_PLATFORM_CHECK_CALL_TRACE_READER_H_
