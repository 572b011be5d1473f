#ifndef STRATA_PLATFORM_SIM_FAULTS_OPTION_TEXT_H_
#define STRATA_PLATFORM_SIM_FAULTS_OPTION_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "strata/platform/calls/device_call.h"

namespace strata::sim {

// Parses the parts of an option's text and rejects wrong ones. Used by fault
// rules and capacity steps.
//
// Errors: std::invalid_argument that names the option, the part and the reason.
class OptionText {
 public:
  // `name` is the name of the option, a static string.
  constexpr explicit OptionText(const char* name) : name_(name) {}

  [[noreturn]] void Reject(std::string_view part,
                           std::string_view reason) const;

  // Parses the value of "key=value", a decimal number in [least, most].
  std::uint64_t Number(std::string_view option, std::string_view value,
                       std::uint64_t least, std::uint64_t most) const;
  // Parses a positive number of bytes: digits and KiB, MiB, GiB, TiB or no
  // unit.
  std::uint64_t Bytes(std::string_view option, std::string_view value) const;

  // The entry point of Device with this name. The error lists all names.
  DeviceCall Call(std::string_view name) const;

  // Removes the text before the first `separator`, and the separator, from
  // `text`. Returns the removed text without the separator.
  static std::string_view NextPart(std::string_view* text, char separator);

 private:
  const char* name_;
};

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_FAULTS_OPTION_TEXT_H_
