#ifndef STRATA_PLATFORM_SIM_OPTION_TEXT_H_
#define STRATA_PLATFORM_SIM_OPTION_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "strata/platform/device_call.h"

namespace strata {

// Reads the parts of an option's text and refuses what it cannot take: what
// fault rules and capacity steps share.
//
// Errors: std::invalid_argument naming the option, the part and the reason.
class OptionText {
 public:
  // `name` is that of the option, static.
  constexpr explicit OptionText(const char* name) : name_(name) {}

  [[noreturn]] void Reject(std::string_view part,
                           std::string_view reason) const;

  // The value of "key=value", a decimal number in [least, most].
  std::uint64_t Number(std::string_view option, std::string_view value,
                       std::uint64_t least, std::uint64_t most) const;
  // The same for a positive number of bytes: digits and KiB, MiB, GiB, TiB or
  // nothing.
  std::uint64_t Bytes(std::string_view option, std::string_view value) const;

  // The entry point of Device that has this name. Names all that there are if
  // none has it.
  DeviceCall Call(std::string_view name) const;

  // The text before the first `separator`, which leaves `text` with it.
  static std::string_view NextPart(std::string_view* text, char separator);

 private:
  const char* name_;
};

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_OPTION_TEXT_H_
