#include "strata/allocation/guard/guard_settings.h"

#include <stdexcept>
#include <string>

#include "strata/allocation/allocation.h"
#include "strata/base/size.h"

namespace strata {
namespace {

// The largest alignment. Larger zones would only slow down a program.
constexpr std::size_t kMaxRedZoneBytes = Mebibytes(16);

// True if `value` is `one`. Throws if it is neither `one` nor `other`.
bool IsFirst(const char* option, const std::string& value, const char* one,
             const char* other) {
  if (value == one) return true;
  if (value == other) return false;
  throw std::invalid_argument(std::string(option) + ": '" + value +
                              "' is unknown (known: " + one + ", " + other +
                              ")");
}

}  // namespace

GuardSettings GuardSettings::From(const GuardOptions& options) {
  if (options.guard_red_zone_bytes > kMaxRedZoneBytes) {
    throw std::invalid_argument(
        "strata_guard_red_zone: " + HumanBytes(options.guard_red_zone_bytes) +
        " is more than " + HumanBytes(kMaxRedZoneBytes));
  }
  const bool pattern =
      IsFirst("strata_guard_fill", options.guard_fill, "pattern", "nan");
  if (!pattern && !options.guard_poison) {
    throw std::invalid_argument(
        "strata_guard_fill=nan contradicts strata_guard_poison=false: it says "
        "what blocks are filled with");
  }
  GuardSettings settings;
  settings.red_zone_bytes =
      AlignUp(options.guard_red_zone_bytes, Block::kOffsetUnitBytes);
  settings.quarantine_bytes = options.guard_quarantine_bytes;
  settings.poison = options.guard_poison;
  settings.fresh_byte = pattern ? 0xCD : 0xFF;
  settings.freed_byte = pattern ? 0xDD : 0xFF;
  settings.abort_on_error =
      IsFirst("strata_guard_on_error", options.guard_on_error, "abort", "log");
  return settings;
}

}  // namespace strata
