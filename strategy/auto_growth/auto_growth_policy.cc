#include "strata/strategy/auto_growth/auto_growth_policy.h"

#include <stdexcept>

#include "strata/strategy/blocks/free_index.h"
#include "strata/strategy/option_bytes.h"

namespace strata {
namespace {

// The graded rule. 2 MiB is the frame of the device. The borders of 1 and 10
// MiB and the chunk of 20 MiB are from pytorch.md §2.1. Sizes up to 1 MiB are
// small; from 10 MiB on, a request gets a chunk of its own.
constexpr std::size_t kFrameBytes = Mebibytes(2);
constexpr std::size_t kSmallLimitBytes = Mebibytes(1);
constexpr std::size_t kMediumLimitBytes = Mebibytes(10);
constexpr std::size_t kMediumChunkBytes = Mebibytes(20);
// A chunk of kMediumChunkBytes may leave this fraction unused.
constexpr std::size_t kMediumRestDivisor = 4;
// Bounds of chunk sizes that are chosen to fit the blocks.
constexpr std::size_t kLeastFittedBytes = Mebibytes(12);
constexpr std::size_t kMostFittedBytes = Mebibytes(32);
// The search ends at the first chunk size that leaves less than this fraction
// unused.
constexpr std::size_t kGoodFitDivisor = 32;
// Two blocks of up to half of kMostPairedBytes share a chunk if a chunk for one
// would leave more than this fraction unused.
constexpr std::size_t kMostPairedBytes = Mebibytes(28);
constexpr std::size_t kAloneRestDivisor = 16;

constexpr std::size_t Index(AutoGrowthPolicy::Pool pool) {
  return static_cast<std::size_t>(pool);
}

// The bytes of a chunk for `count` blocks.
std::size_t ChunkBytes(const AutoGrowthPolicy::Growth& growth,
                       std::size_t count) {
  const std::size_t bytes = count * growth.size;
  if (growth.is_limited && growth.size > kSmallLimitBytes) return bytes;
  return AlignUp(bytes, kFrameBytes);
}

// The fraction of a chunk that `count` blocks leave unused.
double RestOfChunk(const AutoGrowthPolicy::Growth& growth, std::size_t count) {
  return 1 - static_cast<double>(count * growth.size) /
                 static_cast<double>(ChunkBytes(growth, count));
}

// Whether two blocks of kMediumLimitBytes or more share a chunk.
bool IsPaired(const AutoGrowthPolicy::Growth& growth) {
  return growth.size <= kMostPairedBytes / 2 &&
         RestOfChunk(growth, 1) * kAloneRestDivisor > 1 &&
         RestOfChunk(growth, 2) < RestOfChunk(growth, 1);
}

// The number of blocks for a chunk of `least` to `most` bytes that leaves
// little unused; 1 if there is none.
std::size_t BestFittingCount(const AutoGrowthPolicy::Growth& growth,
                             std::size_t least, std::size_t most) {
  std::size_t best = 1;
  double best_rest = 1;
  for (std::size_t count = std::max<std::size_t>(least / growth.size, 1);
       ChunkBytes(growth, count) <= most; ++count) {
    const std::size_t chunk = ChunkBytes(growth, count);
    if (chunk < least) continue;
    const double rest = RestOfChunk(growth, count);
    if (rest >= best_rest) continue;
    best = count;
    best_rest = rest;
    if (rest * kGoodFitDivisor < 1) break;
  }
  return best;
}

}  // namespace

AutoGrowthPolicy::AutoGrowthPolicy(const StrategyOptions& options)
    : AutoGrowthPolicy(options, options.Get<AutoGrowthOptions>()) {}

AutoGrowthPolicy::AutoGrowthPolicy(const StrategyOptions& all,
                                   const AutoGrowthOptions& options)
    : granule_bytes_(options.auto_growth_granule_bytes),
      front_cache_(all),
      free_idle_chunk_(FreesIdleChunks(all)),
      free_when_no_cache_hit_(options.free_when_no_cache_hit &&
                              !all.holds_chunks),
      give_back_limit_(all.holds_chunks ? 0
                                        : options.auto_growth_give_back_limit),
      cross_stream_wait_(all.cross_stream_wait) {
  if (!IsPowerOfTwo(granule_bytes_) ||
      granule_bytes_ < FreeIndex::kGranuleBytes) {
    throw std::invalid_argument(
        "auto_growth_granule_bytes: must be a power of two from 256 on");
  }
  const bool two_pools = options.small_pool_size_in_mb != 0;
  CheckAutoGrowthOptions(options);
  graded_ = options.auto_growth_chunk_rule == "graded" && !two_pools &&
            options.auto_growth_chunk_size_in_mb == 0;
  const std::size_t max_split =
      BytesOfOption("auto_growth_max_split_size_in_mb",
                    options.auto_growth_max_split_size_in_mb);
  max_split_bytes_ = max_split != 0 ? max_split : SIZE_MAX;
  if (graded_) {
    small_limit_bytes_ = kSmallLimitBytes;
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

AutoGrowthPolicy AutoGrowthPolicy::ForPages(const StrategyOptions& options,
                                            std::size_t small_limit_bytes) {
  AutoGrowthPolicy policy(options);
  policy.graded_ = true;
  policy.maps_pages_ = true;
  policy.small_limit_bytes_ = small_limit_bytes;
  policy.max_split_bytes_ = SIZE_MAX;
  policy.free_idle_chunk_ = false;
  policy.free_when_no_cache_hit_ = false;
  return policy;
}

bool AutoGrowthPolicy::SharesMediumChunk(const Growth& growth) {
  if (growth.pool != Pool::kLarge || growth.size >= kMediumLimitBytes) {
    return false;
  }
  const std::size_t rest = kMediumChunkBytes % growth.size;
  return rest <= kMediumChunkBytes / kMediumRestDivisor &&
         rest <= growth.spare_bytes && !growth.is_limited;
}

std::size_t AutoGrowthPolicy::BlocksPerChunk(const Growth& growth) {
  const std::size_t size = growth.size;
  if (growth.pool == Pool::kLongLived) {
    return BestFittingCount(
        growth, size <= kSmallLimitBytes ? kFrameBytes : kLeastFittedBytes,
        kMostFittedBytes);
  }
  if (size <= kSmallLimitBytes) return kFrameBytes / size;
  if (size >= kMediumLimitBytes) return IsPaired(growth) ? 2 : 1;
  if (SharesMediumChunk(growth)) return kMediumChunkBytes / size;
  return BestFittingCount(growth, kLeastFittedBytes, kMostFittedBytes);
}

AutoGrowthPolicy::Sizes AutoGrowthPolicy::GrowthSizes(
    const Growth& growth) const {
  const std::size_t size = growth.size;
  Sizes sizes{};
  std::size_t used = 0;
  const auto add = [&](std::size_t bytes) {
    // A size near the end of the address space may wrap when rounded up.
    if (bytes >= size && (used == 0 || bytes < sizes[used - 1])) {
      sizes[used++] = bytes;
    }
  };
  if (graded_) {
    if (SharesMediumChunk(growth)) add(kMediumChunkBytes);
    std::size_t n = BlocksPerChunk(growth);
    for (; n != 0 && used + 1 < kGrowthSteps; n /= 2) {
      add(ChunkBytes(growth, n));
    }
  } else {
    const std::size_t minimum = min_chunk_bytes_[Index(growth.pool)];
    const std::size_t first =
        std::max(minimum, first_chunk_bytes_[Index(growth.pool)]);
    if (growth.is_first) add(std::max(size, first));
    add(std::max(size, minimum));
  }
  add(size);
  return sizes;
}

}  // namespace strata
