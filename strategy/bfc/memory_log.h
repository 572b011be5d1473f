#ifndef STRATA_STRATEGY_BFC_MEMORY_LOG_H_
#define STRATA_STRATEGY_BFC_MEMORY_LOG_H_

#include <cstddef>
#include <functional>
#include <string>

#include "strata/strategy/bfc/snapshot.h"

namespace strata {

// Eight lines, one number each, for people.
//
// Source: tf_bfc.md R50.
std::string DebugString(const BfcSnapshot::Numbers& numbers);

// The lines of a memory log unless the caller wants more: a summary.
inline constexpr std::size_t kMemoryLogLines = 40;

// Why a request of `rounded_bytes` bytes was not met, as text of at most
// `max_lines` lines.
//
// Model: first the summary, most telling lines first: the request against what
//   is free, usable, not yet in regions and allowed; a drawing of the regions;
//   sizes and owners of what is in use, largest sum first; all bins; the
//   statistics. Then, as far as lines are left, the free chunks of the
//   request's bin with their neighbours, and every region chunk by chunk. The
//   last line says how many were left out.
// Cost: O(chunks log chunks), on a snapshot: no lock is held.
// Source: tf_bfc.md R53; W11: a line for every chunk, under the lock, took
//   minutes.
std::string MemoryLog(const BfcSnapshot& snapshot, std::size_t rounded_bytes,
                      std::size_t max_lines = kMemoryLogLines);

// The logs that one sink writes at most.
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

#endif  // STRATA_STRATEGY_BFC_MEMORY_LOG_H_
