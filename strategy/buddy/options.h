#ifndef STRATA_STRATEGY_BUDDY_OPTIONS_H_
#define STRATA_STRATEGY_BUDDY_OPTIONS_H_

#include "strata/allocation/option_fields.h"

namespace strata {

// Options of naive_best_fit and thread_local; options.def describes each field.
struct BuddyOptions {
#define STRATA_OWN_OPTION STRATA_OPTION_FIELD
#include "strata/strategy/buddy/options.def"
#undef STRATA_OWN_OPTION
};

}  // namespace strata

#endif  // STRATA_STRATEGY_BUDDY_OPTIONS_H_
