#include "strata/strategy/bfc/reports/bin_summary.h"

namespace strata {

BfcBinSummaries SummarizeBins(const BfcSnapshot& snapshot) {
  BfcBinSummaries bins;
  for (const auto& chunk : snapshot.chunks) {
    BfcBinSummary& bin = bins[static_cast<std::size_t>(BfcBinOf(chunk.size))];
    ++bin.chunks;
    bin.bytes += chunk.size;
    if (!chunk.in_use) continue;
    ++bin.chunks_in_use;
    bin.bytes_in_use += chunk.size;
    bin.requested_bytes_in_use += chunk.requested_bytes;
  }
  return bins;
}

}  // namespace strata
