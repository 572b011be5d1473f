#ifndef STRATA_STRATEGY_AUTO_GROWTH_OPTIONS_H_
#define STRATA_STRATEGY_AUTO_GROWTH_OPTIONS_H_

#include <cstdint>

#include "strata/allocation/option_fields.h"

namespace strata {

class StrategyOptions;

// Options of auto_growth; options.def describes each field.
struct AutoGrowthOptions {
#define STRATA_OWN_OPTION STRATA_OPTION_FIELD
#include "strata/strategy/auto_growth/options.def"
#undef STRATA_OWN_OPTION

  // Granule of sizes: 256, or a larger power of two. Not an option:
  // use_auto_growth_pinned_allocator sets it, for pinned memory alone.
  std::uint64_t auto_growth_granule_bytes = 256;
};

// Errors: std::invalid_argument that names the option.
void CheckAutoGrowthOptions(const AutoGrowthOptions& options);

// The options at a place of the host: those that are about devices have their
// defaults.
AutoGrowthOptions OnHost(const AutoGrowthOptions& options);

// Whether a strategy frees a chunk when it becomes idle.
bool FreesIdleChunks(const StrategyOptions& options);

}  // namespace strata

#endif  // STRATA_STRATEGY_AUTO_GROWTH_OPTIONS_H_
