#ifndef STRATA_TESTS_FUZZ_READ_ANY_H_
#define STRATA_TESTS_FUZZ_READ_ANY_H_

#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "strata/tools/commands/call_check.h"
#include "strata/tools/readers/input_buffer.h"
#include "strata/tools/readers/pickle/pickle_reader.h"
#include "strata/tools/readers/trace_reader.h"
#include "strata/tools/trace/skip_log.h"
#include "strata/tools/trace/trace.h"

// The actions of the fuzz targets on an input, and of the tests on mutated
// inputs.
//
// Model: each function returns whether the input was read.
// Errors: std::logic_error if a reader breaks its contract. Exceptions of a
//   reader other than TraceError pass through.
namespace strata {

inline void Require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

inline void RequireOneLine(const std::exception& error) {
  const std::string_view what = error.what();
  Require(what.starts_with("fuzz:"), "the error does not name the file");
  for (const char c : what) {
    Require(static_cast<unsigned char>(c) >= ' ', "the error is not one line");
  }
}

// Every free has its allocation, and all counts match the entries.
inline void RequireConsistent(const tools::Trace& trace) {
  std::vector<bool> is_live(trace.slots);
  std::size_t allocates = 0;
  for (const tools::TraceEvent event : trace.events) {
    Require(event.stream() < trace.streams.size(), "a stream beyond the table");
    if (event.is_release()) continue;
    Require(event.slot() < trace.slots, "a slot beyond the table");
    Require(is_live[event.slot()] == event.is_free(), "a slot used twice");
    if (!event.is_try()) is_live[event.slot()] = event.is_allocate();
    if (!event.is_free()) ++allocates;
  }
  Require(allocates == trace.allocated_bytes.size(), "sizes unlike allocates");
  Require(!trace.events.empty(), "a trace without events");
  Require(trace.LineOf(trace.events.size() - 1) > 0, "an event of no line");
}

// A log that is not empty has a summary. A strict reader skips nothing.
inline void RequireHonest(const tools::SkipLog& log, bool strict) {
  Require(!strict || log.empty(), "a strict reading left something out");
  Require(log.empty() == log.Summary().empty(), "nothing is said of it");
}

inline bool ReadTraceStrictly(std::string_view content, bool strict) {
  try {
    tools::InputBuffer input("fuzz", content);
    tools::TraceReaderOptions options;
    options.strict = strict;
    const tools::Trace trace = tools::ReadTrace(input, options);
    RequireConsistent(trace);
    RequireHonest(trace.skipped, strict);
    return true;
  } catch (const tools::TraceError& error) {
    RequireOneLine(error);
    return false;
  }
}

inline bool ReadAnyTrace(std::string_view content) {
  const bool is_read = ReadTraceStrictly(content, false);
  Require(is_read || !ReadTraceStrictly(content, true),
          "only a strict reading reads it");
  return is_read;
}

// Follows every reference, so that a sanitizer detects a wrong one.
inline void VisitAll(const tools::PickleTree& tree,
                     const tools::PickleOptions& options) {
  std::vector<tools::PickleValue> left = {tree.root()};
  std::vector<bool> visited;
  while (!left.empty()) {
    const tools::PickleValue value = left.back();
    left.pop_back();
    if (value.kind == tools::PickleValue::Kind::kText) {
      Require(tree.Text(value).size() <= options.max_bytes, "a text too long");
    }
    if (!value.IsContainer()) continue;
    if (value.number >= visited.size()) visited.resize(value.number + 1);
    if (visited[value.number]) continue;
    visited[value.number] = true;
    const auto& items = tree.Items(value);
    Require(tree.DroppedItems(value) == 0 || items.empty(), "half dropped");
    left.insert(left.end(), items.begin(), items.end());
  }
}

inline bool ReadPickleOf(std::string_view content, bool allows_objects) {
  tools::PickleOptions options;
  options.keys = {"segments", "device_traces", "action", "addr"};
  options.counted_keys = {"frames"};
  options.allows_objects = allows_objects;
  options.max_bytes = 64 << 20;
  try {
    tools::InputBuffer input("fuzz", content);
    const tools::PickleTree tree = tools::ReadPickle(input, options);
    VisitAll(tree, options);
    Require(allows_objects || tree.objects() == 0, "an object was allowed");
    return true;
  } catch (const tools::TraceError& error) {
    RequireOneLine(error);
    return false;
  }
}

inline bool ReadAnyPickle(std::string_view content) {
  const bool is_plain = ReadPickleOf(content, false);
  const bool is_read = ReadPickleOf(content, true);
  Require(is_read || !is_plain, "plain data is read only if it must be plain");
  return is_plain;
}

// Recorded calls, which may be impossible.
inline bool CheckCallsStrictly(std::string_view content, bool strict) {
  try {
    tools::InputBuffer input("fuzz", content);
    const tools::CheckedCalls calls = tools::CheckCalls(input, strict);
    Require(calls.reports.size() <= calls.hazards, "kept too many");
    RequireHonest(calls.skipped, strict);
    for (const check::HazardReport& report : calls.reports) {
      Require(calls.LineOf(report.second.number) > 1, "a call of no line");
    }
    return true;
  } catch (const tools::TraceError& error) {
    RequireOneLine(error);
    return false;
  }
}

inline bool CheckAnyCalls(std::string_view content) {
  const bool is_read = CheckCallsStrictly(content, false);
  Require(is_read || !CheckCallsStrictly(content, true),
          "only a strict check reads it");
  return is_read;
}

}  // namespace strata

#endif  // STRATA_TESTS_FUZZ_READ_ANY_H_
