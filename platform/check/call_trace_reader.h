#ifndef STRATA_PLATFORM_CHECK_CALL_TRACE_READER_H_
#define STRATA_PLATFORM_CHECK_CALL_TRACE_READER_H_

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "strata/platform/call_record.h"

namespace strata {

// What is wrong with a recorded call trace: "calls.csv:12: 'x' is no number".
class CallTraceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The record of one line of a call trace (call_trace.h), without its end.
//
// Errors: std::invalid_argument saying what is wrong.
CallRecord ParseCallRecord(std::string_view line);

// The calls of a file that CallTrace has written.
//
// Model: lines end in LF or CRLF. Their number is that of their call, plus one.
//   Blank lines at the end are no calls.
// Errors: CallTraceError: the file cannot be opened or read, its header is
//   another one, or a line is wrong (cut off, for instance). Also what a line
//   source throws.
// Threads: externally synchronised.
class CallTraceReader {
 public:
  // Gives the next line, without its end and valid until the next call; false
  // after the last.
  using LineSource = std::function<bool(std::string_view* line)>;

  explicit CallTraceReader(const std::string& path);
  // For a trace that is compressed, say: errors call it `path`.
  CallTraceReader(std::string path, LineSource lines);

  // The next call; false at the end of the file.
  bool Next(CallRecord* record);

 private:
  bool NextLine(std::string_view* line);
  [[noreturn]] void Fail(const std::string& reason) const;

  const std::string path_;
  const LineSource lines_;
  std::uint64_t line_ = 0;
};

}  // namespace strata

#endif  // STRATA_PLATFORM_CHECK_CALL_TRACE_READER_H_
