#ifndef STRATA_ALLOCATION_HIT_STATE_H_
#define STRATA_ALLOCATION_HIT_STATE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "strata/allocation/chain_lock.h"
#include "strata/allocation/front_cache.h"
#include "strata/allocation/lasting.h"
#include "strata/allocation/usage.h"

namespace strata {

// What a hit of a chain reads and writes: in one piece of memory, whichever
// layer it belongs to.
//
// Model: a load waits for the exchange that takes the lock before it, so a hit
//   must not have to fetch an address first: all of this has the lock's.
// Threads: `lock` guards the rest.
// Cost: 8.5 KiB. Where each layer kept its own, a hot pair took 13.3 ns in
//   place of 11.7 (docs/bench.md).
struct alignas(64) HitState {
  explicit HitState(bool may_bias) : lock(may_bias) {}
  // As FrontCache; by default it keeps nothing.
  void Begin(std::size_t max_block_bytes = 0, std::size_t granule_bytes = 2,
             std::uint8_t searches = 2);

  ChainLock lock;
  // What users of the chain hold: of its Stat layer, or else of its front.
  UseCounts counts;
  // Not 0: a hit has to do more than take a block and count it.
  const std::atomic<std::uint32_t>* attention = &kNeverPlain;
  FrontCache cache{0, 2};  // of the strategy

  // That of a lock which is one's.
  static HitState& Of(ChainLock& lock) {
    return reinterpret_cast<HitState&>(lock);  // its first member
  }

  // The word of a chain of which that is always so.
  static const std::atomic<std::uint32_t> kNeverPlain;
};

static_assert(std::is_standard_layout_v<HitState>);

using LastingHitState = Lasting<HitState>;

}  // namespace strata

#endif  // STRATA_ALLOCATION_HIT_STATE_H_
