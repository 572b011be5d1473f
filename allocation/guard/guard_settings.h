#ifndef STRATA_ALLOCATION_GUARD_GUARD_SETTINGS_H_
#define STRATA_ALLOCATION_GUARD_GUARD_SETTINGS_H_

#include <cstddef>

#include "strata/allocation/option_fields.h"

namespace strata {

// Options of the guard; options.def describes each field.
struct GuardOptions {
#define STRATA_OWN_OPTION STRATA_OPTION_FIELD
#include "strata/allocation/guard/options.def"
#undef STRATA_OWN_OPTION
};

// Values that the guard writes around a block. They are unlikely in the data of
// a program, and differ from the fill values of blocks.
inline constexpr unsigned char kGuardFrontByte = 0xAB;
inline constexpr unsigned char kGuardBackByte = 0xBA;

// Options of the Guard layer: GuardOptions after the checks.
struct GuardSettings {
  std::size_t red_zone_bytes = 0;    // on each side; a multiple of 256
  std::size_t quarantine_bytes = 0;  // limit per chain, including zones
  bool poison = false;               // fill blocks when allocated and freed
  // Fill values of a new and of a freed block. 0xFF in every byte is a NaN in
  // every floating-point type.
  unsigned char fresh_byte = 0;
  unsigned char freed_byte = 0;
  bool abort_on_error = false;

  // Errors: std::invalid_argument with the names of the wrong options.
  static GuardSettings From(const GuardOptions& options);
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_GUARD_GUARD_SETTINGS_H_
