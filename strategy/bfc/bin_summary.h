#ifndef STRATA_STRATEGY_BFC_BIN_SUMMARY_H_
#define STRATA_STRATEGY_BFC_BIN_SUMMARY_H_

#include <array>
#include <cstddef>

#include "strata/strategy/bfc/snapshot.h"

namespace strata {

// The chunks of one size class, free and in use. Bytes and counts.
struct BfcBinSummary {
  std::size_t chunks = 0;
  std::size_t chunks_in_use = 0;
  std::size_t bytes = 0;
  std::size_t bytes_in_use = 0;            // whole chunks
  std::size_t requested_bytes_in_use = 0;  // what was asked for
};

// By size class: bin i holds sizes from 256 << i to below the next bin's, the
// last one everything above.
//
// Source: tf_bfc.md R3, R53, R54.
using BfcBinSummaries = std::array<BfcBinSummary, 21>;

// Cost: O(chunks).
BfcBinSummaries SummarizeBins(const BfcSnapshot& snapshot);

// The bin of chunks of `bytes` bytes, and the smallest size of a bin.
std::size_t SummaryBinOf(std::size_t bytes);
std::size_t SummaryBinBytes(std::size_t bin);

}  // namespace strata

#endif  // STRATA_STRATEGY_BFC_BIN_SUMMARY_H_
