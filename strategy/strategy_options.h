#ifndef STRATA_STRATEGY_STRATEGY_OPTIONS_H_
#define STRATA_STRATEGY_STRATEGY_OPTIONS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "strata/base/require_cxx20.h"

namespace strata {

class PeerAccess;

// The settings of all strategies; each strategy reads those with its name. The
// flags in facade/options.def define their meaning.
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
  std::uint64_t auto_growth_max_split_size_in_mb = 0;  // 0: no limit.

  // virtual_memory.
  std::string vmm_remap = "4";  // Or "lazy", "tight", another number.
  std::uint64_t vmm_handle_max_bytes = std::uint64_t{64} << 20;
  std::uint64_t vmm_reserve_bytes = std::uint64_t{32} << 40;
  bool vmm_alias = true;

  // The devices that may access mapped memory; null: only the device itself.
  // Not an option.
  std::shared_ptr<PeerAccess> peers;

  // Whether chunks are managed memory, which has no pages to map. Not an option
  // of its own.
  bool is_managed = false;
  // Not options of their own: copied from DecoratorOptions.
  bool cross_stream_wait = false;
  bool biased_lock = false;

  double cuda_malloc_async_pool_memory_throttle_ratio = 0.8;
  std::uint64_t cuda_memory_async_pool_release_threshold = UINT64_MAX;
  std::string cuda_malloc_async_pool = "own";   // or "default"
  std::string cuda_malloc_async_bins = "none";  // or "pow2"
  std::uint64_t cuda_malloc_async_preallocate_bytes = 0;
  bool cuda_malloc_async_deterministic = false;
  bool cuda_malloc_async_peer_access = false;

  std::string bfc_memory_fraction;  // See BfcFraction; "": all of the device.
  std::uint64_t bfc_system_memory_in_mb = 0;
  std::string bfc_memory_map_prefix;       // "": no memory maps
  std::uint64_t bfc_memory_log_lines = 0;  // 0: no memory logs
  bool bfc_allow_growth = true;
  bool bfc_garbage_collection = true;
  bool bfc_coalesce_regions = false;
  std::uint64_t bfc_memory_limit_bytes = 0;
  double bfc_fragmentation_fraction = 0;
  std::string bfc_placement = "compat";  // or "fast"
  std::string bfc_backpedal = "always";  // or "once"
  bool bfc_timestamps = false;
  bool bfc_keep_annotations = false;
  bool bfc_two_ended = false;
  // "ascending", "descending", "ascending-exact" or "descending-exact".
  std::string bfc_lower_end = "ascending";
  std::string bfc_upper_end = "ascending";

  // naive_best_fit and thread_local.
  double fraction_of_gpu_memory_to_use = 0.92;
  std::uint64_t initial_gpu_memory_in_mb = 0;
  std::uint64_t reallocate_gpu_memory_in_mb = 0;
  double fraction_of_cpu_memory_to_use = 1.0;
  std::uint64_t initial_cpu_memory_in_mb = 500;
  double fraction_of_cuda_pinned_memory_to_use = 0.5;

  // Granule of sizes: 256, or a larger power of two. Not an option:
  // use_auto_growth_pinned_allocator sets it, for pinned memory alone.
  std::uint64_t auto_growth_granule_bytes = 256;

  std::string front_cache = "memory";           // or "speed", "off"
  std::size_t front_cache_max_block_bytes = 0;  // 0: as the mode says

  std::uint64_t pool_size_limit = 100;
  bool pool_auto_resize = true;
  std::string pool_rounder = "none";  // or "pow2"
  std::uint64_t pool_cached_limit_bytes = 0;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_STRATEGY_OPTIONS_H_
