#ifndef STRATA_STRATEGY_BLOCKS_FRONT_CACHE_POLICY_H_
#define STRATA_STRATEGY_BLOCKS_FRONT_CACHE_POLICY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "strata/allocation/option_fields.h"
#include "strata/base/size.h"
#include "strata/strategy/strategy_options.h"

namespace strata {

// Options of the caches of all strategies; options.def describes each field.
struct FrontCacheOptions {
#define STRATA_OWN_OPTION STRATA_OPTION_FIELD
#include "strata/strategy/blocks/options.def"
#undef STRATA_OWN_OPTION
};

// Limits of the FrontCache of a strategy. The options are --strata_front_cache
// and --strata_front_cache_max_block.
//
// Units: bytes.
// Threads: immutable.
// Source: hotpath.md §6; docs/rules/auto_growth.md lists the cost of other
//   numbers.
class FrontCachePolicy {
 public:
  // Errors: std::invalid_argument that names the invalid option.
  explicit FrontCachePolicy(const StrategyOptions& options);

  // See FrontCache; 0: no cache.
  std::size_t max_block_bytes() const { return max_block_bytes_; }
  // Number of searches for a size before it is cached.
  std::uint8_t searches() const {
    return fits_all_ ? kSpeedFirstSearches : kMemoryFirstSearches;
  }
  // Most bytes in the cache while `reserved_bytes` are reserved.
  std::size_t LimitBytes(std::size_t reserved_bytes) const {
    if (fits_all_) return reserved_bytes;
    return std::max(reserved_bytes <= kFewChunksBytes ? kFewChunksLimitBytes
                                                      : kMemoryFirstFloorBytes,
                    reserved_bytes / kMemoryFirstDivisor);
  }

 private:
  // Limit if memory has priority: this fraction of the reserved bytes, but at
  // least the floor. While only a few chunks are reserved, the limit is a
  // quarter of the smallest chunk, because such chunks waste more than that
  // anyway.
  static constexpr std::size_t kMemoryFirstDivisor = 256;
  static constexpr std::size_t kMemoryFirstFloorBytes = Kibibytes(128);
  static constexpr std::size_t kFewChunksBytes = Mebibytes(8);
  static constexpr std::size_t kFewChunksLimitBytes = Kibibytes(512);
  // Where nearly everything may be cached, sizes that recur by chance must not
  // be: docs/rules/auto_growth.md. Random sizes of up to 256 KiB reserve 9 %
  // more with 2 searches, 5 % with 8.
  static constexpr std::uint8_t kMemoryFirstSearches = 2;
  static constexpr std::uint8_t kSpeedFirstSearches = 8;

  std::size_t max_block_bytes_;
  bool fits_all_;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_BLOCKS_FRONT_CACHE_POLICY_H_
