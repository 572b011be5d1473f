#ifndef STRATA_PLATFORM_PROCESSOR_H_
#define STRATA_PLATFORM_PROCESSOR_H_

#include <string_view>

#include "strata/platform/require_cxx20.h"

namespace strata {

// What a processor is, as CPUID tells; "" and 0 of one that has none.
struct ProcessorModel {
  std::string_view vendor;  // "GenuineIntel", "AuthenticAMD"
  unsigned family = 0;
};

// Whether the program is faster where a thread owns its locks than with an
// atomic exchange for each: so on a processor that stands still at one until
// all that was stored before has left the core, as Intel's and AMD's do since
// Zen 5. Zen 3 and 4 go on meanwhile, and there an exchange is cheaper than the
// steps that it takes to do without. False for makers of whom none was
// measured.
//
// Cost: CPUID, once; then a load.
// Source: docs/bench.md (Zen 3, 4 and 5, and of Intel's a Granite Rapids).
bool IsFasterWithOwnedLocks(const ProcessorModel& model) noexcept;
bool IsFasterWithOwnedLocks() noexcept;  // this one

}  // namespace strata

#endif  // STRATA_PLATFORM_PROCESSOR_H_
