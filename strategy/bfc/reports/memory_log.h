#ifndef STRATA_STRATEGY_BFC_REPORTS_MEMORY_LOG_H_
#define STRATA_STRATEGY_BFC_REPORTS_MEMORY_LOG_H_

#include <cstddef>
#include <functional>
#include <string>

#include "strata/strategy/bfc/reports/snapshot.h"

namespace strata {

// Eight lines with one number each, for readers.
//
// Source: tf_bfc.md R50.
std::string DebugString(const BfcSnapshot::Numbers& numbers);

// The default length of a memory log: a summary.
inline constexpr std::size_t kMemoryLogLines = 40;

// A text of at most `max_lines` lines that explains why a request of
// `rounded_bytes` bytes failed.
//
// Model: a summary comes first, the most important lines at the top. It
//   compares the request with the bytes that are free, usable, not yet in
//   regions, and allowed. It then shows a drawing of the regions, the sizes and
//   owners of memory in use by descending sum, all bins, and the statistics. If
//   lines are left, the free chunks of the request's bin with their neighbours
//   follow, then every region chunk by chunk. The last line has the number of
//   omitted lines.
// Cost: O(chunks log chunks), on a snapshot: no lock is held.
// Source: tf_bfc.md R53. W11: a line for every chunk, under the lock, took
//   minutes.
std::string MemoryLog(const BfcSnapshot& snapshot, std::size_t rounded_bytes,
                      std::size_t max_lines = kMemoryLogLines);

// Most logs that one sink writes.
//
// Source: tf_bfc.md R44.
inline constexpr int kMostMemoryLogs = 10;

// A sink that logs MemoryLog for the request of each snapshot.
//
// Errors: none.
// Threads: any thread.
std::function<void(const BfcSnapshot&)> MakeMemoryLogSink(
    std::size_t max_lines);

}  // namespace strata

#endif  // STRATA_STRATEGY_BFC_REPORTS_MEMORY_LOG_H_
