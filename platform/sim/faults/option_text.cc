#include "strata/platform/sim/faults/option_text.h"

#include <cstddef>
#include <limits>
#include <stdexcept>

#include "strata/base/parse_number.h"

namespace strata::sim {
namespace {

struct Unit {
  std::string_view suffix;
  int shift;
};

constexpr Unit kUnits[] = {
    {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}, {"", 0}};

}  // namespace

void OptionText::Reject(std::string_view part, std::string_view reason) const {
  std::string text(name_);
  text.append(": '").append(part).append("' ").append(reason);
  throw std::invalid_argument(text);
}

std::uint64_t OptionText::Number(std::string_view option,
                                 std::string_view value, std::uint64_t least,
                                 std::uint64_t most) const {
  const auto number = ParseNumber<std::uint64_t>(value);
  if (!number || *number < least || *number > most) {
    Reject(option, "is not a number in range");
  }
  return *number;
}

std::uint64_t OptionText::Bytes(std::string_view option,
                                std::string_view value) const {
  for (const Unit& unit : kUnits) {
    if (!value.ends_with(unit.suffix)) continue;
    value.remove_suffix(unit.suffix.size());
    const std::uint64_t most =
        std::numeric_limits<std::uint64_t>::max() >> unit.shift;
    const auto number = ParseNumber<std::uint64_t>(value);
    if (!number || *number == 0 || *number > most) break;
    return *number << unit.shift;
  }
  Reject(option, "is not a size such as 512MiB or 10GiB");
}

DeviceCall OptionText::Call(std::string_view name) const {
  DeviceCall call{};
  if (ParseDeviceCall(name, &call)) return call;
  std::string reason = "is no device call (known: ";
  for (std::size_t i = 0; i < kDeviceCallCount; ++i) {
    if (i != 0) reason += ", ";
    reason += DeviceCallName(static_cast<DeviceCall>(i));
  }
  Reject(name, reason + ")");
}

std::string_view OptionText::NextPart(std::string_view* text, char separator) {
  const std::size_t end = text->find(separator);
  const std::string_view part = text->substr(0, end);
  text->remove_prefix(end == std::string_view::npos ? text->size() : end + 1);
  return part;
}

}  // namespace strata::sim
