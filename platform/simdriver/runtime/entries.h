#ifndef STRATA_PLATFORM_SIMDRIVER_RUNTIME_ENTRIES_H_
#define STRATA_PLATFORM_SIMDRIVER_RUNTIME_ENTRIES_H_

// The functions that the stand-in runtime implements, as runtime_entries.def
// lists them.
//
// Model: each function has the type of the declaration in the toolkit's header,
//   and the name under which the library exports it. If the
//   definition of a function has another type, the linker reports an undefined
//   symbol.

#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>

#include "strata/platform/simdriver/runtime/registration.h"
#include "strata/platform/simdriver/stream_functions.h"

namespace strata::simdriver::runtime {

#define STRATA_SIM_RUNTIME_EXPORT __attribute__((visibility("default")))
#define STRATA_SIM_RUNTIME_ENTRY(exported, function) \
  decltype(::exported) function __asm__(#exported) STRATA_SIM_RUNTIME_EXPORT;
#define STRATA_SIM_RUNTIME_STREAM_ENTRY(exported, suffix, count, function) \
  WithNull<decltype(::exported)> function;                                 \
  STRATA_SIM_RUNTIME_ENTRY(exported, function##Legacy)                     \
  decltype(::exported) function##PerThread __asm__(#exported "_" #suffix)  \
      STRATA_SIM_RUNTIME_EXPORT;
#define STRATA_SIM_RUNTIME_FORWARD(exported, count, with, driver) \
  STRATA_SIM_RUNTIME_ENTRY(exported, exported##Forward)
#define STRATA_SIM_RUNTIME_STREAM_FORWARD(exported, suffix, count, with, \
                                          driver)                        \
  STRATA_SIM_RUNTIME_STREAM_ENTRY(exported, suffix, count, exported##Forward)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include "strata/platform/simdriver/runtime/runtime_entries.def"
#pragma GCC diagnostic pop
#undef STRATA_SIM_RUNTIME_STREAM_FORWARD
#undef STRATA_SIM_RUNTIME_FORWARD
#undef STRATA_SIM_RUNTIME_STREAM_ENTRY
#undef STRATA_SIM_RUNTIME_ENTRY

inline cudaStream_t StreamOf(NullStream null, cudaStream_t stream) {
  return stream == nullptr && null == NullStream::kPerThread
             ? cudaStreamPerThread
             : stream;
}

}  // namespace strata::simdriver::runtime

#endif  // STRATA_PLATFORM_SIMDRIVER_RUNTIME_ENTRIES_H_
