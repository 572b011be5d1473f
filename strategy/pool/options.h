#ifndef STRATA_STRATEGY_POOL_OPTIONS_H_
#define STRATA_STRATEGY_POOL_OPTIONS_H_

#include "strata/allocation/option_fields.h"

namespace strata {

// Options of pool; options.def describes each field.
struct PoolOptions {
#define STRATA_OWN_OPTION STRATA_OPTION_FIELD
#include "strata/strategy/pool/options.def"
#undef STRATA_OWN_OPTION
};

}  // namespace strata

#endif  // STRATA_STRATEGY_POOL_OPTIONS_H_
