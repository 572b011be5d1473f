#ifndef STRATA_ALLOCATION_HIT_CHAIN_STATE_H_
#define STRATA_ALLOCATION_HIT_CHAIN_STATE_H_

#include <atomic>
#include <cstdint>

#include "strata/allocation/hit/chain_lock.h"
#include "strata/allocation/hit/front_cache.h"
#include "strata/allocation/hit/place_peak.h"
#include "strata/allocation/hit/usage.h"

namespace strata {

// All data of a chain that a hit reads and writes, in one piece of memory. The
// ChainStream holds it, so that every layer of the chain can reach it.
//
// Model: after the atomic exchange that acquires the lock, a load waits. So the
//   data lies beside the lock, and a hit need not load an address first.
// Threads: `lock` guards `counts`, `attention`, `allowance_bytes` and `cache`.
//   The other members are constant once the chain is built.
// Cost: 8.5 KiB. Separate pieces per layer cost 1.6 ns more per pair
//   (docs/bench.md).
struct alignas(64) ChainState {
  // A thread may own the lock if `may_bias`.
  explicit ChainState(bool may_bias = false) : lock(may_bias) {}

  ChainLock lock;
  // Numbers of the blocks that the callers of the Stat layer hold, or the
  // callers of the chain if there is no such layer.
  UseCounts counts;
  // Points to a word that is not 0 if a hit must do more than take and count a
  // block.
  const std::atomic<std::uint32_t>* attention = &kNeverPlain;
  // Set by the Stat layer when the chain is built.
  bool has_stat_layer = false;
  PlacePeak* place_peak = nullptr;  // null: the place has no common peak
  // The part of the place's peak that the chain may use.
  std::uint64_t allowance_bytes = kNoPlacePeak;
  // Configured by the strategy; until then it keeps no blocks.
  FrontCache cache;

  // Whether a hit needs no more than to take and count a block. Hold the lock:
  // a request that waits for memory was counted before it last held this lock.
  bool is_plain() const noexcept {
    return attention->load(std::memory_order_relaxed) == 0;
  }
  // Counts a block of a hit, or one that passes the Stat layer. Hold the lock,
  // and release it by EndCount().
  void Count(const Block& block) { counts.CountBelowPeak(block); }
  // Releases the lock. First raises the peaks of the chain and of the place, if
  // they are lower than the bytes in use.
  void EndCount(ThreadState& self = ThisThread()) noexcept {
    if (counts.is_beyond_limit()) return RaisePeaks();
    lock.unlock(self);
  }
  // EndCount() beyond the limit: takes in the queued frees, so that no peak
  // counts them.
  void RaisePeaks() noexcept;

  static constexpr std::uint64_t kNoPlacePeak = UINT64_MAX;
  // A word that is never 0, for a chain without plain hits.
  static constexpr std::atomic<std::uint32_t> kNeverPlain{1};
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_HIT_CHAIN_STATE_H_
