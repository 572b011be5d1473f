#ifndef STRATA_PLATFORM_SIMDRIVER_ENTRIES_H_
#define STRATA_PLATFORM_SIMDRIVER_ENTRIES_H_

// The functions that the stand-in driver implements, as driver_entries.def
// lists them.
//
// Model: each function has the type that cudaTypedefs.h gives to its symbol and
//   version, and the name under which the library exports it. If the
//   definition of a function has another type, the linker reports an undefined
//   symbol.

#include <cuda.h>
#include <cudaTypedefs.h>

#include <type_traits>

#include "strata/platform/simdriver/stream_functions.h"

namespace strata::simdriver {

#define STRATA_SIM_EXPORT __attribute__((visibility("default")))
// cuda.h defines some of these names as macros. So they are pasted or quoted
// before they can expand.
#define STRATA_SIM_DECLARE(pointer, function, exported) \
  std::remove_pointer_t<pointer> function __asm__(exported) STRATA_SIM_EXPORT;
#define STRATA_SIM_ENTRY(symbol, version, exported, function) \
  STRATA_SIM_DECLARE(PFN_##symbol##_v##version, function, #exported)
#define STRATA_SIM_STREAM_ENTRY(symbol, version, exported, thread_version,   \
                                suffix, count, function)                     \
  WithNull<PFN_##symbol##_v##version> function;                              \
  STRATA_SIM_DECLARE(PFN_##symbol##_v##version, function##Legacy, #exported) \
  STRATA_SIM_DECLARE(PFN_##symbol##_v##thread_version##_##suffix,            \
                     function##PerThread, #exported "_" #suffix)
#include "strata/platform/simdriver/driver_entries.def"
#undef STRATA_SIM_STREAM_ENTRY
#undef STRATA_SIM_ENTRY
#undef STRATA_SIM_DECLARE

}  // namespace strata::simdriver

#endif  // STRATA_PLATFORM_SIMDRIVER_ENTRIES_H_
