#include "strata/strategy/bfc/reports/snapshot.h"

#include <algorithm>

namespace strata {
namespace {

constexpr std::size_t kCharacters = 100;

// Draws the `bytes` bytes at `offset` of `total`. Products stay below 2^64:
// no pool has 2^57 bytes.
void Draw(std::string& drawing, std::size_t offset, std::size_t bytes,
          std::size_t total, char character) {
  if (bytes == 0) return;
  const std::size_t first = offset * kCharacters / total;
  const std::size_t last = (offset + bytes - 1) * kCharacters / total;
  std::fill(drawing.begin() + static_cast<std::ptrdiff_t>(first),
            drawing.begin() + static_cast<std::ptrdiff_t>(last) + 1, character);
}

}  // namespace

double Fragmentation(const BfcSnapshot::Numbers& numbers) {
  const std::size_t free_bytes =
      numbers.pool_bytes - std::min(numbers.pool_bytes, numbers.bytes_in_use);
  if (free_bytes == 0) return 0;
  const std::size_t largest =
      std::min(free_bytes, numbers.largest_free_block_bytes);
  return static_cast<double>(free_bytes - largest) /
         static_cast<double>(free_bytes);
}

std::string RenderOccupancy(const BfcSnapshot& snapshot) {
  std::size_t total = 0;
  for (const auto& region : snapshot.regions) total += region.size;
  if (total == 0) return "<allocator contains no memory>";
  std::string drawing(kCharacters, '_');
  std::size_t region_offset = 0;
  for (const auto& region : snapshot.regions) {
    for (std::size_t i = 0; i < region.chunk_count; ++i) {
      const auto& chunk = snapshot.chunks[region.first_chunk + i];
      if (!chunk.in_use) continue;
      const std::size_t offset =
          region_offset + (chunk.address - region.address);
      Draw(drawing, offset + chunk.requested_bytes,
           chunk.size - chunk.requested_bytes, total, 'x');
      Draw(drawing, offset, chunk.requested_bytes, total, '*');
    }
    region_offset += region.size;
  }
  return drawing;
}

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
