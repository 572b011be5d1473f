#ifndef STRATA_STRATEGY_ASYNC_CACHE_POLICY_H_
#define STRATA_STRATEGY_ASYNC_CACHE_POLICY_H_

#include <bit>
#include <cstddef>
#include <cstdint>

#include "strata/strategy/front_cache_policy.h"
#include "strata/strategy/kept_bins.h"
#include "strata/strategy/strategy_options.h"

namespace strata {

// What cuda_malloc_async keeps of the driver's memory, and the sizes that it
// asks for, as --cuda_malloc_async_bins says.
//
// Model: without bins, that of FrontCachePolicy, and the sizes are the
//   requests'. With bins, which are powers of two, a request is served by the
//   smallest that holds it, so that all sizes come again: a bin is kept from
//   its first request on, as many of it as are freed, and stays kept while the
//   driver grows. Requests above the largest bin are the driver's as they are.
// Units: bytes.        Threads: immutable.
// Source: bins as CUB's caching allocator has them (rmm_cccl_umpire.md §2.1);
//   docs/cuda_malloc_async.md has what they cost.
class AsyncCachePolicy {
 public:
  // Errors: std::invalid_argument naming the option that is wrong, or those
  // that contradict each other.
  explicit AsyncCachePolicy(const StrategyOptions& options);

  bool has_bins() const { return largest_bin_bytes_ != 0; }
  // Whether blocks of `size` are counted in KeptBins.
  bool IsLargeBin(std::size_t size) const {
    return size >= KeptBins::kLeastBytes && has_bins();
  }
  // Not yet aligned.
  std::size_t SizeFor(std::size_t requested) const {
    return requested <= largest_bin_bytes_ ? std::bit_ceil(requested)
                                           : requested;
  }
  // Whether a block of `size`, which a request was served with, may serve
  // another one.
  bool MayComeAgain(std::size_t size) const {
    return !has_bins() ||
           (size <= largest_bin_bytes_ && std::has_single_bit(size));
  }

  // See FrontCache; 0: none.
  std::size_t max_block_bytes() const {
    return has_bins() ? largest_bin_bytes_ : front_.max_block_bytes();
  }
  std::uint8_t searches() const { return has_bins() ? 1 : front_.searches(); }
  // Of all that is kept, while so much is held of the driver.
  std::size_t LimitBytes(std::size_t held_bytes) const {
    return has_bins() ? held_bytes : front_.LimitBytes(held_bytes);
  }

 private:
  FrontCachePolicy front_;
  std::size_t largest_bin_bytes_;  // 0: no bins
};

}  // namespace strata

#endif  // STRATA_STRATEGY_ASYNC_CACHE_POLICY_H_
