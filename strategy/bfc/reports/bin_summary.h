#ifndef STRATA_STRATEGY_BFC_REPORTS_BIN_SUMMARY_H_
#define STRATA_STRATEGY_BFC_REPORTS_BIN_SUMMARY_H_

#include <array>
#include <cstddef>

#include "strata/strategy/bfc/arena/geometry.h"
#include "strata/strategy/bfc/reports/snapshot.h"

namespace strata {

// The chunks of one size class, free and in use. Bytes and counts.
struct BfcBinSummary {
  std::size_t chunks = 0;
  std::size_t chunks_in_use = 0;
  std::size_t bytes = 0;
  std::size_t bytes_in_use = 0;            // whole chunks
  std::size_t requested_bytes_in_use = 0;  // As requested.
};

// Summaries by bin (geometry.h), of free chunks and chunks in use.
//
// Source: tf_bfc.md R53, R54.
using BfcBinSummaries = std::array<BfcBinSummary, kBfcBins>;

// Cost: O(chunks).
BfcBinSummaries SummarizeBins(const BfcSnapshot& snapshot);

}  // namespace strata

#endif  // STRATA_STRATEGY_BFC_REPORTS_BIN_SUMMARY_H_
