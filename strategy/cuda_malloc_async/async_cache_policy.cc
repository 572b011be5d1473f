#include "strata/strategy/cuda_malloc_async/async_cache_policy.h"

#include <stdexcept>
#include <string>

#include "strata/allocation/allocation.h"
#include "strata/base/size.h"
#include "strata/strategy/auto_growth/options.h"
#include "strata/strategy/option_bytes.h"
#include "strata/strategy/registry.h"

namespace strata {
namespace {

constexpr std::size_t kLeastBin = Block::kOffsetUnitBytes;
constexpr std::size_t kLargestBin = Gibibytes(1);

std::size_t LargestBin(const StrategyOptions& options) {
  const std::string& bins =
      options.Get<CudaMallocAsyncOptions>().cuda_malloc_async_bins;
  if (ChoiceOf("cuda_malloc_async_bins", "bins", bins, {"none", "pow2"}) == 0) {
    return 0;
  }
  const auto refuse = [](const std::string& other) {
    throw std::invalid_argument("cuda_malloc_async_bins=pow2 contradicts " +
                                other + ", with which nothing is kept");
  };
  const auto& cache = options.Get<FrontCacheOptions>();
  if (cache.front_cache == "off") refuse("strata_front_cache=off");
  if (FreesIdleChunks(options)) refuse("free_idle_chunk");
  const std::size_t most = cache.front_cache_max_block_bytes;
  if (most != 0 && most < kLeastBin) {
    refuse("strata_front_cache_max_block=" + std::to_string(most));
  }
  return most == 0 ? kLargestBin : std::bit_floor(most);
}

}  // namespace

void CheckCudaMallocAsyncOptions(const CudaMallocAsyncOptions& options) {
  if (!(options.cuda_malloc_async_pool_memory_throttle_ratio >= 0)) {
    throw std::invalid_argument(
        "cuda_malloc_async_pool_memory_throttle_ratio: must not be negative");
  }
  ChoiceOf("cuda_malloc_async_pool", "pool", options.cuda_malloc_async_pool,
           {"own", "default"});
}

void CheckCudaMallocAsyncAllocator(const StrategyOptions& all,
                                   std::uint64_t limit_mb) {
  const auto& options = all.Get<CudaMallocAsyncOptions>();
  CheckCudaMallocAsyncOptions(options);
  static_cast<void>(AsyncCachePolicy(all));
  const std::uint64_t bytes = options.cuda_malloc_async_preallocate_bytes;
  const bool is_limited = bytes != 0 && limit_mb != 0;
  if (is_limited && (bytes - 1) / Mebibytes(1) >= limit_mb) {
    RefuseAboveLimit("cuda_malloc_async_preallocate", bytes, limit_mb);
  }
}

AsyncCachePolicy::AsyncCachePolicy(const StrategyOptions& options)
    : front_(options), largest_bin_bytes_(LargestBin(options)) {}

}  // namespace strata
