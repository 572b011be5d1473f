#ifndef STRATA_STRATEGY_CUDA_MALLOC_ASYNC_ASYNC_CACHE_POLICY_H_
#define STRATA_STRATEGY_CUDA_MALLOC_ASYNC_ASYNC_CACHE_POLICY_H_

#include <bit>
#include <cstddef>
#include <cstdint>

#include "strata/allocation/chunks/chunk_holder.h"
#include "strata/strategy/blocks/front_cache_policy.h"
#include "strata/strategy/cuda_malloc_async/options.h"
#include "strata/strategy/strategy_options.h"

namespace strata {

// Limits of the cache of cuda_malloc_async, and the sizes that it requests from
// the driver. The option is --cuda_malloc_async_bins.
//
// Model: without bins, FrontCachePolicy sets the limits, and sizes are those
//   requested. With bins, which are powers of two, the smallest bin that holds
//   a request serves it. A bin is cached from its first request on, without a
//   limit on its count, and stays cached while the driver grows. Requests above
//   the largest bin go to the driver with their own size.
// Units: bytes.
// Threads: immutable.
// Source: bins as in CUB's caching allocator (rmm_cccl_umpire.md §2.1);
//   docs/rules/cuda_malloc_async.md lists their cost.
class AsyncCachePolicy {
 public:
  // Errors: std::invalid_argument that names the invalid option, or the options
  //   that contradict each other.
  explicit AsyncCachePolicy(const StrategyOptions& options);

  bool has_bins() const { return largest_bin_bytes_ != 0; }
  // Whether other streams may fetch blocks of `size`. Smaller bins are not
  // worth the calls.
  bool IsLargeBin(std::size_t size) const {
    return size >= kSystemStepBytes && has_bins();
  }
  // The size to request from the driver; not yet aligned.
  std::size_t SizeFor(std::size_t requested) const {
    return requested <= largest_bin_bytes_ ? std::bit_ceil(requested)
                                           : requested;
  }
  // Whether a block of `size`, which served one request, may serve another one.
  bool MayComeAgain(std::size_t size) const {
    return !has_bins() ||
           (size <= largest_bin_bytes_ && std::has_single_bit(size));
  }

  // See FrontCache; 0: no cache.
  std::size_t max_block_bytes() const {
    return has_bins() ? largest_bin_bytes_ : front_.max_block_bytes();
  }
  std::uint8_t searches() const { return has_bins() ? 1 : front_.searches(); }
  // Most bytes in the cache while the chain holds `held_bytes` of the driver.
  std::size_t LimitBytes(std::size_t held_bytes) const {
    return has_bins() ? held_bytes : front_.LimitBytes(held_bytes);
  }

 private:
  FrontCachePolicy front_;
  std::size_t largest_bin_bytes_;  // 0: no bins
};

}  // namespace strata

#endif  // STRATA_STRATEGY_CUDA_MALLOC_ASYNC_ASYNC_CACHE_POLICY_H_
