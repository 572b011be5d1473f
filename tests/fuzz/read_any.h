#ifndef STRATA_TESTS_FUZZ_READ_ANY_H_
#define STRATA_TESTS_FUZZ_READ_ANY_H_

#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "strata/platform/check/call_trace_reader.h"
#include "strata/platform/check/hazard_checker.h"
#include "strata/tools/input_buffer.h"
#include "strata/tools/line_reader.h"
#include "strata/tools/pickle_reader.h"
#include "strata/tools/trace.h"
#include "strata/tools/trace_reader.h"

// What the fuzz targets do with an input, and the tests with mutated ones. Each
// function throws std::logic_error if a reader breaks its contract, and
// anything but a TraceError that a reader throws passes through. They say
// whether the input was read.
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

// Every free has its allocate, and all counts are of what is there.
inline void RequireConsistent(const Trace& trace) {
  std::vector<bool> is_live(trace.slots);
  std::size_t allocates = 0;
  for (const TraceEvent event : trace.events) {
    Require(event.slot() < trace.slots, "a slot beyond the table");
    Require(event.stream() < trace.streams.size(), "a stream beyond the table");
    Require(is_live[event.slot()] != event.is_allocate(), "a slot used twice");
    is_live[event.slot()] = event.is_allocate();
    if (event.is_allocate()) ++allocates;
  }
  Require(allocates == trace.allocated_bytes.size(), "sizes unlike allocates");
  Require(!trace.events.empty(), "a trace without events");
  Require(trace.LineOf(trace.events.size() - 1) > 0, "an event of no line");
}

inline bool ReadAnyTrace(std::string_view content) {
  try {
    InputBuffer input("fuzz", content);
    RequireConsistent(ReadTrace(input, {}));
    return true;
  } catch (const TraceError& error) {
    RequireOneLine(error);
    return false;
  }
}

// Follows every reference, so that a wrong one is seen by a sanitizer.
inline void VisitAll(const PickleTree& tree, const PickleOptions& options) {
  std::vector<PickleValue> left = {tree.root()};
  std::vector<bool> visited;
  while (!left.empty()) {
    const PickleValue value = left.back();
    left.pop_back();
    if (value.kind == PickleValue::Kind::kText) {
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

inline bool ReadAnyPickle(std::string_view content) {
  PickleOptions options;
  options.keys = {"segments", "device_traces", "action", "addr"};
  options.counted_keys = {"frames"};
  options.max_bytes = 64 << 20;
  try {
    InputBuffer input("fuzz", content);
    VisitAll(ReadPickle(input, options), options);
    return true;
  } catch (const TraceError& error) {
    RequireOneLine(error);
    return false;
  }
}

// Recorded calls, which nobody need have made.
inline bool CheckAnyCalls(std::string_view content) {
  try {
    InputBuffer input("fuzz", content);
    LineReader lines(input);
    CallTraceReader reader(
        "fuzz", [&lines](std::string_view* line) { return lines.Next(line); });
    HazardChecker checker;
    CallRecord record;
    while (reader.Next(&record)) checker.Observe(record);
    Require(checker.hazards().size() <= checker.hazard_count(),
            "kept too many");
    return true;
  } catch (const CallTraceError& error) {
    RequireOneLine(error);
    return false;
  } catch (const TraceError& error) {
    RequireOneLine(error);
    return false;
  }
}

}  // namespace strata

#endif  // STRATA_TESTS_FUZZ_READ_ANY_H_
