#ifndef STRATA_ALLOCATION_USAGE_H_
#define STRATA_ALLOCATION_USAGE_H_

#include "strata/allocation/allocation.h"
#include "strata/allocation/stats.h"

namespace strata {

// How a layer counts what its callers hold. The layer's lock guards `stats`.

// `block` was handed out, with `requested` set.
inline void CountUse(Stats& stats, const Block& block) {
  ++stats.allocations;
  stats.requested_bytes += block.requested;
  stats.total_requested_bytes += block.requested;
  stats.in_use_bytes += block.size;
  if (stats.in_use_bytes > stats.peak_in_use_bytes) {
    stats.peak_in_use_bytes = stats.in_use_bytes;
  }
}

// `block` is about to be given back.
inline void UncountUse(Stats& stats, const Block& block) {
  ++stats.frees;
  stats.requested_bytes -= block.requested;
  stats.in_use_bytes -= block.size;
}

// Undoes UncountUse, with the lock held ever since.
inline void RecountUse(Stats& stats, const Block& block) {
  --stats.frees;
  stats.requested_bytes += block.requested;
  stats.in_use_bytes += block.size;
}

}  // namespace strata

#endif  // STRATA_ALLOCATION_USAGE_H_
