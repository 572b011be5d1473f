#ifndef STRATA_STRATEGY_BFC_REPORTS_OCCUPANCY_H_
#define STRATA_STRATEGY_BFC_REPORTS_OCCUPANCY_H_

#include <string>

#include "strata/strategy/bfc/reports/snapshot.h"

namespace strata {

// Fragmentation: the fraction of the free bytes outside the largest free block.
// 0 if all is in one block, or nothing is free.
//
// Source: tf_bfc.md R51.
double Fragmentation(const BfcSnapshot::Numbers& numbers);

// The regions as 100 characters, by address: `*` requested bytes, `x` bytes
// added by rounding, `_` free. In a character with several kinds, `*` wins,
// then `x`. Without regions the result is "<allocator contains no memory>".
//
// Cost: O(chunks).
// Source: tf_bfc.md R52.
std::string RenderOccupancy(const BfcSnapshot& snapshot);

}  // namespace strata

#endif  // STRATA_STRATEGY_BFC_REPORTS_OCCUPANCY_H_
