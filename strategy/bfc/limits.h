#ifndef STRATA_STRATEGY_BFC_LIMITS_H_
#define STRATA_STRATEGY_BFC_LIMITS_H_

#include <cstddef>
#include <string_view>

#include "strata/allocation/option_fields.h"
#include "strata/platform/device.h"

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

// The fraction of a device's memory that a pool may hold: at first, and at
// most.
//
// Model: as text "0.75" (both equal), "0.75+" (grows to 1.0) or "0.75-0.85"
//   (grows to 0.85). "0" means the free memory minus the reserve of the system.
//   Values above 1.0, up to 100, are for memory that may exceed the device's.
// Source: tf_bfc.md R59, R61.
struct BfcFraction {
  double start = 0;
  double most = 0;

  // Errors: std::invalid_argument that names bfc_memory_fraction and the text.
  static BfcFraction Parse(std::string_view text);
};

// Inputs of the size of a pool. Bytes.
struct BfcDeviceMemory {
  std::size_t total_bytes = 0;
  std::size_t free_bytes = 0;
  int compute_major = 0;    // see Caps
  bool is_managed = false;  // the pool's memory may exceed the device's
};

// The size of a pool. Bytes.
struct BfcMemoryLimit {
  // Size of the first region, if the pool cannot grow.
  std::size_t start_bytes = 0;
  std::size_t most_bytes = 0;
};

// The memory reserved for the system: driver, libraries, other processes.
//
// Source: tf_bfc.md R59, without its factor of 2 for builds without
//   optimisation: the size of a pool should not depend on the build.
std::size_t MinSystemMemory(std::size_t free_bytes, int compute_major);

// The size of a pool. If bfc_system_memory_in_mb is set: the free memory minus
// that option; the option is ignored with a warning if less is free. Else by
// bfc_memory_fraction. Else all of the device.
//
// Model: only managed memory may exceed the device's total.
// Errors: none; CheckBfcLimits has accepted the options.
// Source: tf_bfc.md R59 to R61.
BfcMemoryLimit ResolveBfcLimit(const BfcFlags& options,
                               const BfcDeviceMemory& memory);

// Errors: std::invalid_argument that names an option with invalid text, or two
//   options that both set the limit.
void CheckBfcLimits(const BfcFlags& options);

// CheckBfcLimits for a device: a fraction above 1.0 needs managed memory that
// may exceed the device's.
//
// Errors: std::invalid_argument that names the option and the reason.
// Source: tf_bfc.md R60.
void CheckBfcLimits(const BfcFlags& options, const Caps& caps);

}  // namespace strata

#endif  // STRATA_STRATEGY_BFC_LIMITS_H_
