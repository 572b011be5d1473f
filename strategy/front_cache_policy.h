#ifndef STRATA_STRATEGY_FRONT_CACHE_POLICY_H_
#define STRATA_STRATEGY_FRONT_CACHE_POLICY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "strata/allocation/size.h"
#include "strata/strategy/strategy_options.h"

namespace strata {

// What the FrontCache of a strategy may keep, as --strata_front_cache and
// --strata_front_cache_max_block say.
//
// Units: bytes.        Threads: immutable.
// Source: hotpath.md §6; docs/auto_growth.md has what other numbers cost.
class FrontCachePolicy {
 public:
  // Errors: std::invalid_argument naming the option that is wrong.
  explicit FrontCachePolicy(const StrategyOptions& options);

  // See FrontCache; 0: none.
  std::size_t max_block_bytes() const { return max_block_bytes_; }
  // How often a size is searched for before it is kept.
  std::uint8_t searches() const {
    return fits_all_ ? kSpeedFirstSearches : kMemoryFirstSearches;
  }
  // Of all it keeps, while so much is reserved.
  std::size_t LimitBytes(std::size_t reserved_bytes) const {
    if (fits_all_) return reserved_bytes;
    return std::max(reserved_bytes <= kFewChunksBytes ? kFewChunksLimitBytes
                                                      : kMemoryFirstFloorBytes,
                    reserved_bytes / kMemoryFirstDivisor);
  }

 private:
  // What a front cache that puts memory first may keep: this part of what is
  // reserved, but no less than the floor; of the first few chunks, a quarter of
  // the smallest, because what they have too much is more than that anyway.
  static constexpr std::size_t kMemoryFirstDivisor = 256;
  static constexpr std::size_t kMemoryFirstFloorBytes = Kibibytes(128);
  static constexpr std::size_t kFewChunksBytes = Mebibytes(8);
  static constexpr std::size_t kFewChunksLimitBytes = Kibibytes(512);
  // Where nearly everything may be kept, what comes again by chance must not
  // be. Random sizes of up to 256 KiB reserve 9 % more with 2, 5 % with 8.
  static constexpr std::uint8_t kMemoryFirstSearches = 2;
  static constexpr std::uint8_t kSpeedFirstSearches = 8;

  std::size_t max_block_bytes_;
  bool fits_all_;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_FRONT_CACHE_POLICY_H_
