#ifndef STRATA_STRATEGY_BFC_OCCUPANCY_H_
#define STRATA_STRATEGY_BFC_OCCUPANCY_H_

#include <string>

#include "strata/strategy/bfc/snapshot.h"

namespace strata {

// How badly the free memory is scattered: the part of the free bytes that is
// not in the largest free block. 0: all in one block, or nothing is free.
//
// Source: tf_bfc.md R51.
double Fragmentation(const BfcSnapshot::Numbers& numbers);

// The regions as 100 characters, by address: `*` what was asked for, `x` what
// rounding added, `_` free. Where several meet in a character, `*` wins, then
// `x`. "<allocator contains no memory>" without regions.
//
// Cost: O(chunks).
// Source: tf_bfc.md R52.
std::string RenderOccupancy(const BfcSnapshot& snapshot);

}  // namespace strata

#endif  // STRATA_STRATEGY_BFC_OCCUPANCY_H_
