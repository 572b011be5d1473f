#ifndef STRATA_STRATEGY_STRATEGY_OPTIONS_H_
#define STRATA_STRATEGY_STRATEGY_OPTIONS_H_

#include <cstdint>
#include <string>

namespace strata {

// The settings of every strategy; each reads those that carry its name. The
// meaning of each is with its flag, in facade/options.def.
struct StrategyOptions {
  std::uint64_t auto_growth_chunk_size_in_mb = 0;
  std::uint64_t small_pool_size_in_mb = 0;
  std::uint64_t small_pool_auto_growth_chunk_size_in_mb = 0;
  std::uint64_t large_pool_auto_growth_chunk_size_in_mb = 0;
  std::uint64_t small_pool_pre_alloc_in_mb = 0;
  std::uint64_t large_pool_pre_alloc_in_mb = 0;
  bool free_idle_chunk = false;
  bool free_when_no_cache_hit = false;
  std::string auto_growth_chunk_rule = "graded";  // or "exact"
  double auto_growth_give_back_limit = 1.0;

  double cuda_malloc_async_pool_memory_throttle_ratio = 0.8;
  std::uint64_t cuda_memory_async_pool_release_threshold = UINT64_MAX;
  std::string cuda_malloc_async_pool = "own";  // or "default"
  std::uint64_t cuda_malloc_async_preallocate_bytes = 0;
  bool cuda_malloc_async_deterministic = false;
  bool cuda_malloc_async_peer_access = false;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_STRATEGY_OPTIONS_H_
