#ifndef STRATA_STRATEGY_FRONT_CACHE_POLICY_H_
#define STRATA_STRATEGY_FRONT_CACHE_POLICY_H_

#include <cstddef>

#include "strata/strategy/strategy_options.h"

namespace strata {

// What the FrontCache of a strategy may keep, as --strata_front_cache and
// --strata_front_cache_max_block say.
//
// Units: bytes.        Threads: immutable.
// Source: hotpath.md §6; docs/auto_growth.md has what other numbers cost.
class FrontCachePolicy {
 public:
  // What a front cache that puts memory first may keep: a quarter of the
  // smallest chunk, or this part of what is reserved.
  static constexpr std::size_t kFloorBytes = std::size_t{512} << 10;
  static constexpr std::size_t kDivisor = 64;

  // Errors: std::invalid_argument naming the option that is wrong.
  explicit FrontCachePolicy(const StrategyOptions& options);

  // See FrontCache; 0: none.
  std::size_t max_block_bytes() const { return max_block_bytes_; }
  // Of all it keeps, while so much is reserved.
  std::size_t LimitBytes(std::size_t reserved_bytes) const;

 private:
  std::size_t max_block_bytes_;
  bool fits_all_;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_FRONT_CACHE_POLICY_H_
