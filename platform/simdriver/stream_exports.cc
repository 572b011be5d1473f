// The exported functions of the calls that depend on the null stream.

#include "strata/platform/simdriver/entries.h"

namespace strata::simdriver {

#define STRATA_SIM_ENTRY(symbol, version, exported, function)
#define STRATA_SIM_STREAM_ENTRY(symbol, version, exported, thread_version, \
                                suffix, count, function)                   \
  STRATA_DEFINE_EXPORTS(CUresult, count, function)
#include "strata/platform/simdriver/driver_entries.def"
#undef STRATA_SIM_STREAM_ENTRY
#undef STRATA_SIM_ENTRY

}  // namespace strata::simdriver
