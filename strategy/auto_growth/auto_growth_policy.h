#ifndef STRATA_STRATEGY_AUTO_GROWTH_AUTO_GROWTH_POLICY_H_
#define STRATA_STRATEGY_AUTO_GROWTH_AUTO_GROWTH_POLICY_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "strata/allocation/chunks/chunk_holder.h"
#include "strata/base/size.h"
#include "strata/strategy/auto_growth/options.h"
#include "strata/strategy/blocks/front_cache_policy.h"
#include "strata/strategy/strategy_options.h"

namespace strata {

// The sizes of auto_growth: which pool serves a size, how large a chunk to
// allocate on a miss, and which idle chunks stay whole.
//
// Model: there are two sets of rules.
//   Exact rules (paddle.md §3.3 rules 2, 4) apply if
//   auto_growth_chunk_size_in_mb or small_pool_size_in_mb is set, or
//   auto_growth_chunk_rule is "exact". There is one pool; with
//   small_pool_size_in_mb there are two, and only then the other flags of the
//   pools apply. A chunk is as large as the request, but at least the flag of
//   its pool.
//   Graded rules apply otherwise:
//   - Requests of up to 1 MiB use a pool with chunks of 2 MiB.
//   - Requests below 10 MiB share chunks of 20 MiB, or of up to 32 MiB where a
//     chunk of 20 MiB would leave more than a quarter unused.
//   - A larger request gets a chunk of its own size. Up to 14 MiB, two requests
//     share one chunk where a chunk for one would leave more than 1/16 unused.
//   - All chunks are multiples of 2 MiB, the device's own step.
//   Under a limit, which counts bytes, chunks of requests above 1 MiB are not
//   rounded up. Requests with kLongLived use a pool of their own. Near the
//   limit, or near the end of the device's memory, chunks hold the number of
//   blocks that fits best. Idle chunks are then not split for much smaller
//   requests (MayCut).
// Units: bytes.
// Source: the graded rule is memory_policy.md §5.7 with PyTorch's two borders
//   (pytorch.md §2.1); docs/rules/auto_growth.md explains each part.
class AutoGrowthPolicy {
 public:
  enum class Pool : std::uint32_t { kSmall, kLarge, kLongLived };
  static constexpr std::size_t kPoolCount = 3;
  static constexpr std::size_t kGrowthSteps = 8;
  using Sizes = std::array<std::size_t, kGrowthSteps>;

  // Errors: std::invalid_argument that names the invalid option.
  explicit AutoGrowthPolicy(const StrategyOptions& options);
  // For a strategy that maps memory to extend a block. Blocks of up to
  // `small_limit_bytes` use a pool of their own, long-lived blocks do not, and
  // idle memory of other streams may be split.
  static AutoGrowthPolicy ForPages(const StrategyOptions& options,
                                   std::size_t small_limit_bytes);

  // `size` is a rounded size.
  Pool PoolOf(std::size_t size) const {
    return size <= small_limit_bytes_ ? Pool::kSmall : Pool::kLarge;
  }

  // Bytes that the ends of new chunks may leave unused. `room_bytes`: bytes by
  // which the place can grow. `unused_bytes`: free bytes in chunks that hold
  // live blocks.
  static std::size_t SpareOfGrowth(std::size_t room_bytes,
                                   std::size_t unused_bytes) {
    const std::size_t spare = room_bytes / kGrowthSpareDivisor;
    return spare - std::min(spare, unused_bytes);
  }

  struct Growth {
    std::size_t size = 0;  // Size of the missing block; rounded.
    Pool pool = Pool::kSmall;
    bool is_first = false;    // The pool has never grown: it pre-allocates.
    bool is_limited = false;  // The place has a limit.
    std::size_t spare_bytes = SIZE_MAX;  // SpareOfGrowth
  };
  // Chunk sizes to try, largest first, without repetition. Unused entries are
  // 0.
  Sizes GrowthSizes(const Growth& growth) const;

  // Smallest loan from another stream for a block of `size`. Small blocks share
  // a loan.
  std::size_t LoanSize(std::size_t size) const {
    return PoolOf(size) == Pool::kSmall
               ? GrowthSizes({.size = size, .pool = Pool::kSmall})[0]
               : size;
  }

  // Whether an idle chunk may be split for `size`. If not, the request grows,
  // and the chunk serves only requests of nearly its own size. See
  // SpareOfGrowth for `room_bytes` and `unused_bytes`.
  bool MayCut(std::size_t chunk_bytes, std::size_t size, std::size_t room_bytes,
              std::size_t unused_bytes) const {
    const std::size_t rest = chunk_bytes - size;
    if (StaysWhole(chunk_bytes)) {
      return StaysWhole(size) && rest < kMostWholeRestBytes;
    }
    return unused_bytes + rest <= room_bytes / kCutSpareDivisor ||
           rest <= size / kCutRestDivisor || chunk_bytes <= kCutChunkBytes ||
           !graded_;
  }
  // As MayCut, for an idle loan: once split, it cannot be returned.
  static bool MayCutLoan(std::size_t loan_bytes, std::size_t size) {
    return loan_bytes - size <= size / kCutRestDivisor ||
           loan_bytes <= kSystemStepBytes;
  }
  bool maps_pages() const { return maps_pages_; }
  // Whether long-lived blocks have chunks of their own.
  bool keeps_apart() const { return !maps_pages_; }
  // Whether a refused growth frees an idle chunk to make room.
  bool replaces_idle() const { return graded_; }
  // Whether auto_growth_max_split_size_in_mb forbids to split a chunk of this
  // size: the chunk serves one block at a time.
  bool StaysWhole(std::size_t chunk_bytes) const {
    return chunk_bytes > max_split_bytes_;
  }

  // Sizes are rounded up to a multiple of this granule.
  std::size_t granule_bytes() const { return granule_bytes_; }
  const FrontCachePolicy& front_cache() const { return front_cache_; }
  bool free_idle_chunk() const { return free_idle_chunk_; }
  bool free_when_no_cache_hit() const { return free_when_no_cache_hit_; }
  // The effort to borrow memory of another stream instead of growing.
  ChunkHolder::LoanRequest::Effort loan_effort() const {
    return cross_stream_wait_ ? ChunkHolder::LoanRequest::Effort::kOrder
                              : ChunkHolder::LoanRequest::Effort::kAsk;
  }
  // See IdleMarket::GiveBackBeforeGrowth; 0: never.
  double give_back_limit() const { return give_back_limit_; }

 private:
  AutoGrowthPolicy(const StrategyOptions& all,
                   const AutoGrowthOptions& options);

  // Fractions of the room that chunks may leave unused. Larger fractions suit
  // larger devices, smaller ones reserve more where there is much room:
  // docs/rules/auto_growth.md.
  static constexpr std::size_t kCutSpareDivisor = 6;
  static constexpr std::size_t kGrowthSpareDivisor = 128;
  // A rest of up to this fraction of the request is not counted as waste.
  static constexpr std::size_t kCutRestDivisor = 8;
  // Blocks share chunks of up to this size in any case.
  static constexpr std::size_t kCutChunkBytes = Mebibytes(32);
  // PyTorch's kLargeBuffer (pytorch.md §2.1).
  static constexpr std::size_t kMostWholeRestBytes = Mebibytes(20);

  // Whether the chunk is a shared one of 20 MiB, whatever the request.
  static bool SharesMediumChunk(const Growth& growth);
  // Number of blocks of the size that a chunk shall hold.
  static std::size_t BlocksPerChunk(const Growth& growth);

  bool graded_;
  bool maps_pages_ = false;
  std::size_t granule_bytes_;
  std::size_t small_limit_bytes_;  // Largest size of the small pool.
  std::size_t max_split_bytes_;    // Larger chunks stay whole.
  // By pool; 0 for kLongLived.
  std::array<std::size_t, kPoolCount> min_chunk_bytes_{};
  std::array<std::size_t, kPoolCount> first_chunk_bytes_{};
  FrontCachePolicy front_cache_;
  bool free_idle_chunk_;
  bool free_when_no_cache_hit_;
  double give_back_limit_;
  bool cross_stream_wait_;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_AUTO_GROWTH_AUTO_GROWTH_POLICY_H_
