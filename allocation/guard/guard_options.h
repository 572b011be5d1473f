#ifndef STRATA_ALLOCATION_GUARD_GUARD_OPTIONS_H_
#define STRATA_ALLOCATION_GUARD_GUARD_OPTIONS_H_

#include "strata/allocation/option_fields.h"

namespace strata {

// Options of the guard; options.def describes each field.
struct GuardOptions {
#define STRATA_OWN_OPTION STRATA_OPTION_FIELD
#include "strata/allocation/guard/options.def"
#undef STRATA_OWN_OPTION
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_GUARD_GUARD_OPTIONS_H_
