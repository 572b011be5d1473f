#ifndef STRATA_PLATFORM_HOST_PROCESSOR_H_
#define STRATA_PLATFORM_HOST_PROCESSOR_H_

#include <string_view>

#include "strata/base/require_cxx20.h"

namespace strata {

// The model of a processor as CPUID reports it; "" and 0 if there is no CPUID.
struct ProcessorModel {
  std::string_view vendor;  // "GenuineIntel", "AuthenticAMD"
  unsigned family = 0;
};

// Returns true if locks that a thread owns are faster than one atomic exchange
// per lock operation. That holds for processors that stall at an atomic
// exchange until all earlier stores have left the core: Intel's, and AMD's
// since Zen 5. Zen 3 and 4 do not stall, and an exchange is cheaper there than
// the steps that replace it. False for vendors that were not measured.
//
// Cost: CPUID, once; then a load.
// Source: docs/measurements/before_2026-11-29.md (Zen 3, 4 and 5, and Intel's
//   Granite Rapids).
bool IsFasterWithOwnedLocks(const ProcessorModel& model) noexcept;
bool IsFasterWithOwnedLocks() noexcept;  // this processor

}  // namespace strata

#endif  // STRATA_PLATFORM_HOST_PROCESSOR_H_
