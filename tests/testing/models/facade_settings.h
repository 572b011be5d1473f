#ifndef STRATA_TESTS_TESTING_MODELS_FACADE_SETTINGS_H_
#define STRATA_TESTS_TESTING_MODELS_FACADE_SETTINGS_H_

#include <string>
#include <vector>

namespace strata {

// Options, in the format of Options::Parse, that lead a facade with `strategy`
// through different code paths.
inline std::vector<std::string> FacadeSettings(const std::string& strategy) {
  std::vector<std::string> settings = {
      "", "gpu_memory_limit_mb=96", "strata_in_use_limit=64MiB",
      "strata_exact_peak strata_check_streams alloc_fill_value=90",
      "strata_guard strata_guard_quarantine=8MiB"};
  const auto add = [&](std::vector<std::string> more) {
    settings.insert(settings.end(), more.begin(), more.end());
  };
  // Driver pools hold device memory only.
  if (strategy != "cuda_malloc_async") {
    add({"strata_host_strategy=" + strategy +
         " strata_pinned_strategy=" + strategy});
  }
  if (strategy == "cuda_malloc_async") {
    add({"strata_front_cache=off", "cuda_malloc_async_bins=pow2",
         "cuda_malloc_async_bins=pow2 strata_front_cache_max_block=64KiB "
         "gpu_memory_limit_mb=96"});
  }
  if (strategy == "auto_growth") {
    add({"auto_growth_chunk_rule=exact", "free_idle_chunk",
         "free_when_no_cache_hit",
         "small_pool_size_in_mb=1 small_pool_auto_growth_chunk_size_in_mb=2 "
         "large_pool_auto_growth_chunk_size_in_mb=16",
         "small_pool_size_in_mb=1 small_pool_pre_alloc_in_mb=4 "
         "large_pool_pre_alloc_in_mb=32"});
  }
  if (strategy == "virtual_memory") {
    add({"strata_vmm_remap=lazy", "strata_vmm_remap=tight",
         "strata_vmm_alias=false", "strata_vmm_reserve=64MiB"});
  }
  if (strategy == "bfc") {
    add({"bfc_placement=fast", "bfc_placement=fast strata_front_cache=speed"});
  }
  if (strategy == "pool") {
    add({"pool_size_limit=0", "pool_size_limit=3 pool_auto_resize=0",
         "pool_size_limit=1 pool_rounder=pow2", "pool_cached_limit=2MiB"});
  }
  return settings;
}

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_MODELS_FACADE_SETTINGS_H_
