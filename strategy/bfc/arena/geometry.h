#ifndef STRATA_STRATEGY_BFC_ARENA_GEOMETRY_H_
#define STRATA_STRATEGY_BFC_ARENA_GEOMETRY_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <optional>

#include "strata/base/size.h"

namespace strata {

// The sizes of BfcAllocator: multiples of a granule, and the 21 bins of its
// reports. Source: tf_bfc.md R1, R3.

inline constexpr std::size_t kBfcGranuleBytes = 256;
inline constexpr int kBfcBins = 21;
// The largest request, region and limit: more than any device has, and far from
// overflow.
inline constexpr std::size_t kBfcMaxBytes = std::size_t{1} << 47;

// Rounds up to granules; nullopt above kBfcMaxBytes.
constexpr std::optional<std::size_t> BfcRounded(std::size_t bytes) {
  if (bytes > kBfcMaxBytes) return std::nullopt;
  return AlignUp(bytes, kBfcGranuleBytes);
}

// The smallest size of a bin. A bin holds sizes below twice that; the last bin
// holds all larger sizes.
constexpr std::size_t BfcBinBytes(int bin) { return kBfcGranuleBytes << bin; }

constexpr int BfcBinOf(std::size_t bytes) {
  const std::size_t granules =
      std::max(bytes, kBfcGranuleBytes) / kBfcGranuleBytes;
  return std::min(kBfcBins - 1, static_cast<int>(std::bit_width(granules)) - 1);
}

}  // namespace strata

#endif  // STRATA_STRATEGY_BFC_ARENA_GEOMETRY_H_
