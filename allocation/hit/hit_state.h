#ifndef STRATA_ALLOCATION_HIT_HIT_STATE_H_
#define STRATA_ALLOCATION_HIT_HIT_STATE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "strata/allocation/hit/chain_lock.h"
#include "strata/allocation/hit/front_cache.h"
#include "strata/allocation/hit/usage.h"

namespace strata {

// All data of a chain that a hit reads and writes, in one piece of memory.
//
// Model: after the atomic exchange that acquires the lock, a load waits. So the
//   data lies beside the lock, and a hit need not load an address first.
// Threads: `lock` guards the other members.
// Cost: 8.5 KiB. Separate pieces per layer cost 1.6 ns more per pair
//   (docs/bench.md).
struct alignas(64) HitState {
  // A thread may own the lock if `may_bias`. The other parameters are as for
  // FrontCache; by default the cache keeps no blocks.
  explicit HitState(bool may_bias = false, std::size_t max_block_bytes = 0,
                    std::size_t granule_bytes = 2, std::uint8_t searches = 2)
      : lock(may_bias), cache(max_block_bytes, granule_bytes, searches) {}

  ChainLock lock;
  // Numbers of the memory that users of the chain hold: of its Stat layer, or
  // of its front if there is no such layer. Guarded by `lock`.
  UseCounts counts;
  // Points to a word that is not 0 if a hit must do more than take and count a
  // block.
  const std::atomic<std::uint32_t>* attention = &kNeverPlain;
  FrontCache cache;  // of the strategy

  // A word that is never 0, for a chain without plain hits.
  static constexpr std::atomic<std::uint32_t> kNeverPlain{1};
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_HIT_HIT_STATE_H_
