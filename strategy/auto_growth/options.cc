#include "strata/strategy/auto_growth/options.h"

#include <stdexcept>

#include "strata/strategy/option_bytes.h"
#include "strata/strategy/registry.h"
#include "strata/strategy/strategy_options.h"

namespace strata {

void CheckAutoGrowthOptions(const AutoGrowthOptions& options) {
  ChoiceOf("auto_growth_chunk_rule", "rule", options.auto_growth_chunk_rule,
           {"graded", "exact"});
  if (!(options.auto_growth_give_back_limit >= 0)) {
    throw std::invalid_argument(
        "auto_growth_give_back_limit: must not be negative");
  }
  CheckMebibytes("auto_growth_chunk_size_in_mb",
                 options.auto_growth_chunk_size_in_mb);
  CheckMebibytes("small_pool_size_in_mb", options.small_pool_size_in_mb);
  CheckMebibytes("small_pool_auto_growth_chunk_size_in_mb",
                 options.small_pool_auto_growth_chunk_size_in_mb);
  CheckMebibytes("large_pool_auto_growth_chunk_size_in_mb",
                 options.large_pool_auto_growth_chunk_size_in_mb);
  CheckMebibytes("small_pool_pre_alloc_in_mb",
                 options.small_pool_pre_alloc_in_mb);
  CheckMebibytes("large_pool_pre_alloc_in_mb",
                 options.large_pool_pre_alloc_in_mb);
}

void CheckAutoGrowthAllocator(const StrategyOptions& all,
                              std::uint64_t limit_mb) {
  const auto& options = all.Get<AutoGrowthOptions>();
  CheckAutoGrowthOptions(options);
  CheckBelowLimit("auto_growth_chunk_size_in_mb",
                  options.auto_growth_chunk_size_in_mb, limit_mb);
  CheckBelowLimit("small_pool_auto_growth_chunk_size_in_mb",
                  options.small_pool_auto_growth_chunk_size_in_mb, limit_mb);
  CheckBelowLimit("large_pool_auto_growth_chunk_size_in_mb",
                  options.large_pool_auto_growth_chunk_size_in_mb, limit_mb);
  CheckBelowLimit("small_pool_pre_alloc_in_mb",
                  options.small_pool_pre_alloc_in_mb, limit_mb);
  CheckBelowLimit("large_pool_pre_alloc_in_mb",
                  options.large_pool_pre_alloc_in_mb, limit_mb);
}

AutoGrowthOptions OnHost(const AutoGrowthOptions& options) {
  const AutoGrowthOptions defaults;
  AutoGrowthOptions result = options;
  result.auto_growth_chunk_size_in_mb = defaults.auto_growth_chunk_size_in_mb;
  result.small_pool_size_in_mb = defaults.small_pool_size_in_mb;
  result.auto_growth_chunk_rule = defaults.auto_growth_chunk_rule;
  result.free_idle_chunk = defaults.free_idle_chunk;
  result.free_when_no_cache_hit = defaults.free_when_no_cache_hit;
  result.auto_growth_give_back_limit = defaults.auto_growth_give_back_limit;
  return result;
}

bool FreesIdleChunks(const StrategyOptions& options) {
  return options.Get<AutoGrowthOptions>().free_idle_chunk &&
         !options.holds_chunks;
}

}  // namespace strata
