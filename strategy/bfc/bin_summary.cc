#include "strata/strategy/bfc/bin_summary.h"

namespace strata {

std::size_t SummaryBinBytes(std::size_t bin) { return std::size_t{256} << bin; }

std::size_t SummaryBinOf(std::size_t bytes) {
  constexpr std::size_t kLast = std::tuple_size_v<BfcBinSummaries> - 1;
  std::size_t bin = 0;
  while (bin < kLast && bytes >= SummaryBinBytes(bin + 1)) ++bin;
  return bin;
}

BfcBinSummaries SummarizeBins(const BfcSnapshot& snapshot) {
  BfcBinSummaries bins;
  for (const auto& chunk : snapshot.chunks) {
    BfcBinSummary& bin = bins[SummaryBinOf(chunk.size)];
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
