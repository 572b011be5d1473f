#ifndef STRATA_STRATEGY_VIRTUAL_MEMORY_OPTIONS_H_
#define STRATA_STRATEGY_VIRTUAL_MEMORY_OPTIONS_H_

#include "strata/allocation/option_fields.h"

namespace strata {

// Options of virtual_memory; options.def describes each field.
struct VirtualMemoryOptions {
#define STRATA_OWN_OPTION STRATA_OPTION_FIELD
#include "strata/strategy/virtual_memory/options.def"
#undef STRATA_OWN_OPTION
};

}  // namespace strata

#endif  // STRATA_STRATEGY_VIRTUAL_MEMORY_OPTIONS_H_
