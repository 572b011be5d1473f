#ifndef STRATA_STRATEGY_AUTO_GROWTH_POLICY_H_
#define STRATA_STRATEGY_AUTO_GROWTH_POLICY_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "strata/allocation/chunk_holder.h"
#include "strata/strategy/front_cache_policy.h"
#include "strata/strategy/strategy_options.h"

namespace strata {

// The numbers of auto_growth: which pool serves a size, and how much to take
// from the system on a miss.
//
// Model: two sets of rules. With auto_growth_chunk_size_in_mb or
//   small_pool_size_in_mb set, or auto_growth_chunk_rule=exact, those of the
//   original (paddle.md §3.3 rules 2, 4): one pool, or two with
//   small_pool_size_in_mb, which alone makes the flags of the pools count; a
//   chunk is as large as the request, but at least the flag of its pool.
//   Otherwise the graded ones: requests below 1 MiB in a pool of their own with
//   chunks of 2 MiB, so that a small block does not pin a large chunk; below
//   10 MiB chunks of 20 MiB; above, the request itself; all in steps of 2 MiB,
//   the device's own.
// Units: bytes.
// Source: the graded rule is that of memory_policy.md §5.7 with PyTorch's two
//   borders (pytorch.md §2.1); docs/auto_growth.md has what each part buys.
class AutoGrowthPolicy {
 public:
  enum class Pool : std::uint32_t { kSmall, kLarge };
  static constexpr std::size_t kPoolCount = 2;
  static constexpr std::size_t kGrowthSteps = 3;

  // Errors: std::invalid_argument naming the option that is wrong.
  explicit AutoGrowthPolicy(const StrategyOptions& options);

  // `size` is a rounded size.
  Pool PoolOf(std::size_t size) const {
    return size <= small_limit_bytes_ ? Pool::kSmall : Pool::kLarge;
  }
  // Chunk sizes to try for a block of `size`, largest first, without
  // repetition; unused entries are 0. `is_first` says that the pool has never
  // grown, which is when it takes its pre-allocation.
  std::array<std::size_t, kGrowthSteps> GrowthSizes(std::size_t size,
                                                    bool is_first) const;

  // The least that a block of `size` borrows from another stream: small blocks
  // share what they borrow.
  std::size_t LoanSize(std::size_t size) const {
    return PoolOf(size) == Pool::kSmall ? GrowthSizes(size, false)[0] : size;
  }

  // Sizes are rounded up to a multiple of it.
  std::size_t granule_bytes() const { return granule_bytes_; }
  // See FrontCache; 0: none.
  std::size_t front_cache_max_block() const {
    return front_cache_.max_block_bytes();
  }
  std::uint8_t front_cache_searches() const { return front_cache_.searches(); }
  // Most bytes to keep there while `reserved_bytes` are reserved.
  std::size_t FrontCacheLimit(std::size_t reserved_bytes) const {
    return front_cache_.LimitBytes(reserved_bytes);
  }
  bool free_idle_chunk() const { return free_idle_chunk_; }
  bool free_when_no_cache_hit() const { return free_when_no_cache_hit_; }
  // What may be done to have memory of another stream instead of growing.
  LoanRequest::Effort loan_effort() const {
    return cross_stream_wait_ ? LoanRequest::Effort::kOrder
                              : LoanRequest::Effort::kAsk;
  }
  // Whether a thread may own the strategy's lock.
  bool biased_lock() const { return biased_lock_; }
  // Whether steps that repeat are served from a plan.
  bool step_plan() const { return step_plan_; }
  // See ChunkPool::GiveBackBeforeGrowth; 0: never.
  double give_back_limit() const { return give_back_limit_; }

 private:
  bool graded_;
  std::size_t granule_bytes_;
  std::size_t small_limit_bytes_;  // sizes up to this are small
  std::array<std::size_t, kPoolCount> min_chunk_bytes_{};
  std::array<std::size_t, kPoolCount> first_chunk_bytes_{};
  FrontCachePolicy front_cache_;
  bool free_idle_chunk_;
  bool free_when_no_cache_hit_;
  double give_back_limit_;
  bool step_plan_;
  bool cross_stream_wait_;
  bool biased_lock_;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_AUTO_GROWTH_POLICY_H_
