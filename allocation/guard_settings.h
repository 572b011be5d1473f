#ifndef STRATA_ALLOCATION_GUARD_SETTINGS_H_
#define STRATA_ALLOCATION_GUARD_SETTINGS_H_

#include <cstddef>

#include "strata/allocation/decorator_options.h"

namespace strata {

// What the guard writes around a block: none of these is likely in a program's
// data, and none is what it fills blocks with.
inline constexpr unsigned char kGuardFrontByte = 0xAB;
inline constexpr unsigned char kGuardBackByte = 0xBA;

// How the Guard layer behaves: DecoratorOptions, checked.
struct GuardSettings {
  std::size_t red_zone_bytes = 0;    // on each side; a multiple of 256
  std::size_t quarantine_bytes = 0;  // kept back per chain, zones included
  bool poison = false;               // fill blocks when allocated and freed
  // What a new and a freed block are filled with. 0xFF in every byte is a NaN
  // in every floating-point type.
  unsigned char fresh_byte = 0;
  unsigned char freed_byte = 0;
  bool abort_on_error = false;

  // Errors: std::invalid_argument naming the option or options that are wrong.
  static GuardSettings From(const DecoratorOptions& options);
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_GUARD_SETTINGS_H_
