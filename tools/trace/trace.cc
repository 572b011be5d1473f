#include "strata/tools/trace/trace.h"

#include <algorithm>

namespace strata::tools {
namespace {

std::string Describe(const std::string& path, std::uint64_t line,
                     std::string_view reason) {
  std::string text = path + ":";
  if (line != 0) text += std::to_string(line) + ":";
  text += " ";
  return text.append(reason);
}

}  // namespace

TraceError::TraceError(const std::string& path, std::uint64_t line,
                       std::string_view reason)
    : std::runtime_error(Describe(path, line, reason)) {}

const char* Trace::UnitName(Unit unit) {
  return unit == Unit::kLine ? "line" : "entry";
}

std::string Trace::Where(std::size_t event) const {
  std::string text = path + (unit == Unit::kLine ? ":" : ": entry ");
  return text += std::to_string(LineOf(event));
}

void Trace::FoldStreams(std::size_t count) {
  if (count >= streams.size()) return;
  streams.resize(count);
  for (TraceEvent& event : events) {
    const auto stream = static_cast<std::uint32_t>(event.stream() % count);
    event = TraceEvent(event.kind(), event.slot(), stream);
  }
  for (RecordedSegment& segment : recorded.segments) {
    segment.stream = static_cast<std::uint32_t>(segment.stream % count);
  }
}

std::uint64_t Trace::LineOf(std::size_t event) const {
  const auto after =
      std::upper_bound(line_jumps.begin(), line_jumps.end(), event,
                       [](std::size_t wanted, const LineJump& jump) {
                         return wanted < jump.event;
                       });
  if (after == line_jumps.begin()) return 0;
  const LineJump& jump = *(after - 1);
  return jump.line + (event - jump.event);
}

}  // namespace strata::tools
