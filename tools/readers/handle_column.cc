#include "strata/tools/readers/handle_column.h"

#include <array>
#include <cstddef>

#include "strata/base/parse_number.h"

namespace strata::tools {
namespace {

constexpr std::size_t kMostHexDigits = 16;

}  // namespace

std::optional<std::uint64_t> HandleColumn::Parse(std::string_view text) {
  if (text == "(nil)") return 0;
  if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
    is_mixed_ = true;
    return ParseNumber<std::uint64_t>(text.substr(2), 16);
  }
  if (is_hex_) return ParseNumber<std::uint64_t>(text, 16);
  if (const auto decimal = ParseNumber<std::uint64_t>(text, 10)) {
    is_mixed_ = is_mixed_ || text.size() > kMostHexDigits;
    return decimal;
  }
  const auto hexadecimal = ParseNumber<std::uint64_t>(text, 16);
  const bool has_letters =
      text.find_first_not_of("0123456789") != std::string_view::npos;
  if (!hexadecimal || !has_letters) return std::nullopt;
  if (!is_mixed_) is_hex_ = has_turned_ = true;
  return hexadecimal;
}

bool HandleColumn::TakeTurned() {
  const bool has_turned = has_turned_;
  has_turned_ = false;
  return has_turned;
}

std::uint64_t HandleColumn::ToHex(std::uint64_t number) {
  std::array<char, 20> digits{};
  const char* end =
      std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  const std::string_view text(digits.data(),
                              static_cast<std::size_t>(end - digits.data()));
  return ParseNumber<std::uint64_t>(text, 16).value_or(number);
}

}  // namespace strata::tools
