#ifndef STRATA_STRATEGY_BFC_BFC_FLAGS_H_
#define STRATA_STRATEGY_BFC_BFC_FLAGS_H_

#include "strata/allocation/option_fields.h"

namespace strata {

// Options of bfc as the user writes them; options.def describes each field.
// ReadBfcOptions reads them.
struct BfcFlags {
#define STRATA_OWN_OPTION STRATA_OPTION_FIELD
#include "strata/strategy/bfc/options.def"
#undef STRATA_OWN_OPTION
};

// The options at a place of the host: those that are about devices have their
// defaults.
BfcFlags OnHost(const BfcFlags& options);

}  // namespace strata

#endif  // STRATA_STRATEGY_BFC_BFC_FLAGS_H_
