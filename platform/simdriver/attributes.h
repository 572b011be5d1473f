#ifndef STRATA_PLATFORM_SIMDRIVER_ATTRIBUTES_H_
#define STRATA_PLATFORM_SIMDRIVER_ATTRIBUTES_H_

#include "strata/base/require_cxx20.h"

namespace strata::simdriver {

// Figures of the simulated GPU, which are those of an H100 (SXM). So a program
// that selects its algorithms by such figures acts as on an H100.
//
// Source: CUDA programming guide, tables of compute capability 9.0.
inline constexpr int kMultiprocessors = 132;
inline constexpr int kMaxThreadsPerBlock = 1024;
inline constexpr int kMaxThreadsPerMultiprocessor = 2048;
inline constexpr int kMaxBlocksPerMultiprocessor = 32;
// Priorities of streams, which the simulated device ignores.
inline constexpr int kLeastPriority = 0;
inline constexpr int kGreatestPriority = -5;

}  // namespace strata::simdriver

#endif  // STRATA_PLATFORM_SIMDRIVER_ATTRIBUTES_H_
