#ifndef STRATA_STRATEGY_BFC_LIMITS_H_
#define STRATA_STRATEGY_BFC_LIMITS_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "strata/platform/device.h"
#include "strata/strategy/strategy_options.h"

namespace strata {

// The part of a device's memory that a pool may have: at first, and at most.
//
// Model: as text "0.75" (both the same), "0.75+" (grows to 1.0) or "0.75-0.85"
//   (grows to 0.85). "0" means what is free, less what the system needs. Above
//   1.0, up to 100, is for memory that may exceed the device's.
// Source: tf_bfc.md R59, R61.
struct BfcFraction {
  double start = 0;
  double most = 0;

  // Errors: std::invalid_argument naming bfc_memory_fraction and the text.
  static BfcFraction Parse(std::string_view text);
};

// What the size of a pool depends on. Bytes.
struct BfcDeviceMemory {
  std::size_t total_bytes = 0;
  std::size_t free_bytes = 0;
  int compute_major = 0;    // see Caps
  bool is_managed = false;  // the pool's memory may exceed the device's
};

// The size of a pool. Bytes.
struct BfcMemoryLimit {
  std::size_t start_bytes = 0;  // of the first region, if the pool cannot grow
  std::size_t most_bytes = 0;
};

// The memory that is left to the system: driver, libraries, other processes.
//
// Source: tf_bfc.md R59; the factor of 2 for builds without optimisation is
//   left out, since a pool's size should not depend on the build.
std::size_t MinSystemMemory(std::size_t free_bytes, int compute_major);

// The size of a pool: what is free less bfc_system_memory_in_mb, if that is set
// (ignored with a warning if less is free); else by bfc_memory_fraction; else
// all of the device.
//
// Model: only managed memory has more than the device's total.
// Errors: none; the options are those that CheckBfcLimits accepts.
// Source: tf_bfc.md R59 to R61.
BfcMemoryLimit ResolveBfcLimit(const StrategyOptions& options,
                               const BfcDeviceMemory& memory);

// Errors: std::invalid_argument naming the option whose text is wrong, or two
//   options that each set the limit.
void CheckBfcLimits(const StrategyOptions& options);

// The same for a device: a fraction above 1.0 needs managed memory that may
// exceed the device's.
//
// Errors: std::invalid_argument naming the option and the reason.
// Source: tf_bfc.md R60.
void CheckBfcLimits(const StrategyOptions& options, const Caps& caps);

}  // namespace strata

#endif  // STRATA_STRATEGY_BFC_LIMITS_H_
