#include "strata/strategy/auto_growth_policy.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "strata/allocation/size.h"
#include "strata/strategy/free_index.h"
#include "strata/strategy/option_bytes.h"

namespace strata {
namespace {

// The graded rule. 2 MiB is the frame of the device; the borders of 1 and
// 10 MiB and the chunk of 20 MiB are those of pytorch.md §2.1.
constexpr std::size_t kFrameBytes = Mebibytes(2);
constexpr std::size_t kSmallLimitBytes = Mebibytes(1);
constexpr std::size_t kMediumLimitBytes = Mebibytes(10);
constexpr std::size_t kMediumChunkBytes = Mebibytes(20);

constexpr std::size_t Index(AutoGrowthPolicy::Pool pool) {
  return static_cast<std::size_t>(pool);
}

}  // namespace

AutoGrowthPolicy::AutoGrowthPolicy(const StrategyOptions& options)
    : granule_bytes_(options.auto_growth_granule_bytes),
      front_cache_(options),
      free_idle_chunk_(options.free_idle_chunk),
      free_when_no_cache_hit_(options.free_when_no_cache_hit),
      give_back_limit_(options.auto_growth_give_back_limit),
      // With it, each free may change the chunks.
      step_plan_(options.auto_growth_step_plan && !options.free_idle_chunk),
      cross_stream_wait_(options.cross_stream_wait),
      biased_lock_(options.biased_lock) {
  if (!IsPowerOfTwo(granule_bytes_) ||
      granule_bytes_ < FreeIndex::kGranuleBytes) {
    throw std::invalid_argument(
        "auto_growth_granule_bytes: must be a power of two from 256 on");
  }
  const bool two_pools = options.small_pool_size_in_mb != 0;
  const std::string& rule = options.auto_growth_chunk_rule;
  if (rule != "graded" && rule != "exact") {
    throw std::invalid_argument("auto_growth_chunk_rule: unknown rule '" +
                                rule + "' (known: graded, exact)");
  }
  graded_ = rule == "graded" && !two_pools &&
            options.auto_growth_chunk_size_in_mb == 0;
  if (graded_) {
    small_limit_bytes_ = kSmallLimitBytes - 1;
    return;
  }
  give_back_limit_ = 0;
  small_limit_bytes_ =
      BytesOfOption("small_pool_size_in_mb", options.small_pool_size_in_mb);
  auto& small = min_chunk_bytes_[Index(Pool::kSmall)];
  auto& large = min_chunk_bytes_[Index(Pool::kLarge)];
  if (two_pools) {
    small = BytesOfOption("small_pool_auto_growth_chunk_size_in_mb",
                          options.small_pool_auto_growth_chunk_size_in_mb);
    large = BytesOfOption("large_pool_auto_growth_chunk_size_in_mb",
                          options.large_pool_auto_growth_chunk_size_in_mb);
    first_chunk_bytes_ = {BytesOfOption("small_pool_pre_alloc_in_mb",
                                        options.small_pool_pre_alloc_in_mb),
                          BytesOfOption("large_pool_pre_alloc_in_mb",
                                        options.large_pool_pre_alloc_in_mb)};
  } else {
    large = BytesOfOption("auto_growth_chunk_size_in_mb",
                          options.auto_growth_chunk_size_in_mb);
  }
}

std::array<std::size_t, AutoGrowthPolicy::kGrowthSteps>
AutoGrowthPolicy::GrowthSizes(std::size_t size, bool is_first) const {
  std::array<std::size_t, kGrowthSteps> sizes{};
  std::size_t count = 0;
  const auto add = [&](std::size_t bytes) {
    // A size near the end of the address space may wrap when rounded up.
    if (bytes >= size && (count == 0 || bytes < sizes[count - 1])) {
      sizes[count++] = bytes;
    }
  };
  if (graded_) {
    if (size <= kSmallLimitBytes - 1) {
      add(kFrameBytes);
    } else {
      if (size < kMediumLimitBytes) add(kMediumChunkBytes);
      add(AlignUp(size, kFrameBytes));
    }
  } else {
    const std::size_t pool = Index(PoolOf(size));
    const std::size_t minimum = min_chunk_bytes_[pool];
    const std::size_t first = std::max(minimum, first_chunk_bytes_[pool]);
    if (is_first) add(std::max(size, first));
    add(std::max(size, minimum));
  }
  add(size);
  return sizes;
}

}  // namespace strata
