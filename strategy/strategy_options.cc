#include "strata/strategy/strategy_options.h"

#include "strata/strategy/bfc/limits.h"
#include "strata/strategy/bfc/options.h"
#include "strata/strategy/buddy/buddy_sizes.h"
#include "strata/strategy/cuda_malloc_async/async_cache_policy.h"
#include "strata/strategy/virtual_memory/vmm_policy.h"

namespace strata {

void CheckStrategyOptions(const StrategyOptions& options) {
  CheckBuddyOptions(options);
  CheckAutoGrowthOptions(options);
  CheckCudaMallocAsyncOptions(options);
  static_cast<void>(AsyncCachePolicy(options));
  static_cast<void>(VmmPolicy(options));
  ReadBfcOptions(options);
  CheckBfcLimits(options);
  CheckPoolOptions(options);
}

StrategyOptions OnHost(const StrategyOptions& options) {
  StrategyOptions result = options;
  static_cast<AutoGrowthOptions&>(result) =
      OnHost(static_cast<const AutoGrowthOptions&>(options));
  static_cast<BfcFlags&>(result) =
      OnHost(static_cast<const BfcFlags&>(options));
  return result;
}

}  // namespace strata
