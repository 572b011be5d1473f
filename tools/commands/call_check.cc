#include "strata/tools/commands/call_check.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>

#include "strata/base/quoted.h"
#include "strata/platform/calls/call_trace.h"
#include "strata/platform/check/call_trace_reader.h"
#include "strata/platform/check/hazard_checker.h"
#include "strata/tools/readers/file_kind.h"
#include "strata/tools/readers/line_reader.h"
#include "strata/tools/readers/trace_reader.h"
#include "strata/tools/trace/trace.h"

namespace strata::tools {
namespace {

constexpr std::size_t kFields = 10;

// The reason why a line is no call.
SkipKind KindOf(std::string_view line) {
  const auto commas = std::count(line.begin(), line.end(), ',');
  if (static_cast<std::size_t>(commas) + 1 != kFields) {
    return SkipKind::kForeignRow;
  }
  for (int i = 0; i < 3; ++i) line.remove_prefix(line.find(',') + 1);
  DeviceCall call;
  return ParseObservedCall(line.substr(0, line.find(',')), &call)
             ? SkipKind::kBadValue
             : SkipKind::kUnknownAction;
}

class CallChecker {
 public:
  CallChecker(InputBuffer& input, bool strict)
      : input_(input), strict_(strict), lines_(input) {}

  CheckedCalls Check() {
    ReadHeader();
    std::string_view line;
    std::uint64_t blank_line = 0;
    while (lines_.Next(&line)) {
      if (line.empty()) {
        if (blank_line == 0) blank_line = lines_.line();
        continue;
      }
      if (blank_line != 0 && strict_) {
        throw TraceError(input_.path(), blank_line,
                         "a blank line between calls");
      }
      result_.skipped.AddRows(1);
      ReadCall(line);
    }
    return Finish();
  }

 private:
  void ReadHeader() {
    std::string kind;
    try {
      kind = CallForeignKind(HeadOf(input_), input_.path());
    } catch (const InputError& error) {
      throw TraceError(input_.path(), 1, error.what());
    }
    if (!kind.empty()) throw TraceError(input_.path(), 0, "this is " + kind);
    std::string_view header;
    if (lines_.Next(&header) && header == kCallTraceHeader) return;
    throw TraceError(
        input_.path(), 1,
        "is no call trace: its first line is not " + Quoted(kCallTraceHeader));
  }

  void ReadCall(std::string_view line) {
    CallRecord record;
    try {
      record = check::ParseCallRecord(line);
    } catch (const std::invalid_argument& error) {
      if (strict_) throw TraceError(input_.path(), lines_.line(), error.what());
      result_.skipped.Add(
          lines_.is_unended() ? SkipKind::kCutRow : KindOf(line), lines_.line(),
          error.what());
      return;
    }
    checker_.Observe(record);
    const std::uint64_t call = checker_.record_count();
    if (result_.LineOf(call) != lines_.line()) {
      result_.line_jumps.push_back({call, lines_.line()});
    }
  }

  CheckedCalls Finish() {
    CountInput(input_, strict_, &result_.skipped);
    result_.path = input_.path();
    result_.calls = checker_.record_count();
    result_.hazards = checker_.hazard_count();
    result_.reports = checker_.hazards();
    const SkipLog::Skipped* first = result_.skipped.First();
    if (result_.calls == 0 && first != nullptr) {
      throw TraceError(input_.path(), first->line, first->reason);
    }
    return std::move(result_);
  }

  InputBuffer& input_;
  const bool strict_;
  LineReader lines_;
  check::HazardChecker checker_;
  CheckedCalls result_;
};

}  // namespace

std::uint64_t CheckedCalls::LineOf(std::uint64_t call) const {
  const auto after =
      std::upper_bound(line_jumps.begin(), line_jumps.end(), call,
                       [](std::uint64_t wanted, const LineJump& jump) {
                         return wanted < jump.call;
                       });
  // The header is the first line.
  if (after == line_jumps.begin()) return call + 1;
  const LineJump& jump = *(after - 1);
  return jump.line + (call - jump.call);
}

CheckedCalls CheckCalls(InputBuffer& input, bool strict) {
  return CallChecker(input, strict).Check();
}

}  // namespace strata::tools
