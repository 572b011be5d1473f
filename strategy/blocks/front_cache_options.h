#ifndef STRATA_STRATEGY_BLOCKS_FRONT_CACHE_OPTIONS_H_
#define STRATA_STRATEGY_BLOCKS_FRONT_CACHE_OPTIONS_H_

#include "strata/allocation/option_fields.h"

namespace strata {

// Options of the caches of all strategies; options.def describes each field.
struct FrontCacheOptions {
#define STRATA_OWN_OPTION STRATA_OPTION_FIELD
#include "strata/strategy/blocks/options.def"
#undef STRATA_OWN_OPTION
};

}  // namespace strata

#endif  // STRATA_STRATEGY_BLOCKS_FRONT_CACHE_OPTIONS_H_
