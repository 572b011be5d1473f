#ifndef STRATA_ALLOCATION_DIAGNOSTICS_RECORDING_OPTIONS_H_
#define STRATA_ALLOCATION_DIAGNOSTICS_RECORDING_OPTIONS_H_

#include "strata/allocation/option_fields.h"

namespace strata {

// Options of the layers that record calls; options.def describes each field.
struct RecordingOptions {
#define STRATA_OWN_OPTION STRATA_OPTION_FIELD
#include "strata/allocation/diagnostics/options.def"
#undef STRATA_OWN_OPTION
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_DIAGNOSTICS_RECORDING_OPTIONS_H_
