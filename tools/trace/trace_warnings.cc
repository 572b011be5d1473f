#include "strata/tools/trace/trace_warnings.h"

#include <cstdio>
#include <string>

namespace strata::tools {
namespace {

// From this many streams on, the queries of other streams at each growth
// dominate the time of a replay.
constexpr std::size_t kManyStreams = 500;

void Say(const std::string& path, std::uint64_t count,
         const std::string& text) {
  std::fprintf(stderr, "strata: warning: %s: %llu %s\n", path.c_str(),
               static_cast<unsigned long long>(count), text.c_str());
}

}  // namespace

void WarnOfSkipped(const std::string& path, Trace::Unit unit,
                   const SkipLog& log) {
  for (const SkipKind kind : kSkipKinds) {
    const SkipLog::Skipped& skipped = log.of(kind);
    if (skipped.count == 0) continue;
    std::string text = SkipKindText(kind);
    text += skipped.count == 1 ? " (" : " (first: ";
    if (skipped.line != 0) {
      text.append(Trace::UnitName(unit)).append(" ");
      text.append(std::to_string(skipped.line)).append(": ");
    }
    Say(path, skipped.count, text.append(skipped.reason).append(")"));
  }
}

void Warn(const Trace& trace) {
  WarnOfSkipped(trace.path, trace.unit, trace.skipped);
  const auto warn = [&](std::uint64_t count, const char* text) {
    if (count != 0) Say(trace.path, count, text);
  };
  warn(trace.frees_of_other_size,
       "frees give another size than their allocate, which counts");
  warn(trace.frees_of_other_stream,
       "frees give another stream than their allocate, which counts");
  warn(
      trace.has_both_defaults ? 2 : 0,
      "names of the default stream, 0 and 1: one stream to a driver, and here");
  warn(trace.failures_skipped,
       "requests that ran out of memory are skipped: their size is unknown");
  warn(trace.reallocations_skipped,
       "reallocate of host memory are skipped, so its blocks keep their sizes");
  warn(trace.devices_skipped,
       "other devices have entries, which are skipped; --trace_device chooses");
  warn(trace.other_place_rows,
       "rows are skipped: not of the first device's memory");
  warn(trace.frees_completed,
       "frees have no free_requested entry; their free_completed counts, so "
       "memory may be live a little longer than it was");
  warn(trace.blocks_before,
       trace.has_lost_entries
           ? "blocks are allocated first: live before the first entry, as the "
             "ring of entries wrapped and lost the oldest"
           : "blocks are allocated first: live before the first entry, as the "
             "recording began later or its ring wrapped");
  warn(trace.blocks_after,
       "blocks are skipped: allocated after the last entry");
  warn(trace.streams.size() > kManyStreams ? trace.streams.size() : 0,
       "streams, each with memory of its own, take long; --streams folds them");
}

}  // namespace strata::tools
