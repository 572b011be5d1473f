#ifndef STRATA_TESTS_TESTING_FACADE_SETTINGS_H_
#define STRATA_TESTS_TESTING_FACADE_SETTINGS_H_

#include <string>
#include <vector>

namespace strata {

// Options, as Options::Parse reads them, that lead a facade with `strategy`
// through different code.
inline std::vector<std::string> FacadeSettings(const std::string& strategy) {
  std::vector<std::string> settings = {
      "", "gpu_memory_limit_mb=96", "strata_in_use_limit=64MiB",
      "strata_exact_peak strata_check_streams alloc_fill_value=90",
      "strata_guard strata_guard_quarantine=8MiB"};
  const auto add = [&](std::vector<std::string> more) {
    settings.insert(settings.end(), more.begin(), more.end());
  };
  if (strategy == "auto_growth") {
    add({"auto_growth_chunk_rule=exact", "free_idle_chunk",
         "free_when_no_cache_hit",
         "small_pool_size_in_mb=1 small_pool_auto_growth_chunk_size_in_mb=2 "
         "large_pool_auto_growth_chunk_size_in_mb=16",
         "small_pool_size_in_mb=1 small_pool_pre_alloc_in_mb=4 "
         "large_pool_pre_alloc_in_mb=32"});
  }
  return settings;
}

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_FACADE_SETTINGS_H_
