#ifndef STRATA_BASE_PARSE_NUMBER_H_
#define STRATA_BASE_PARSE_NUMBER_H_

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

#include "strata/base/require_cxx20.h"

namespace strata {

// The number that all of `text` spells, or nothing: for empty text, for other
// characters around the number, and for a number that the type cannot hold.
// `format` is a base for integers (default 10), or a std::chars_format.
template <class Number, class... Format>
std::optional<Number> ParseNumber(std::string_view text, Format... format) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] =
      std::from_chars(text.data(), end, number, format...);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

}  // namespace strata

#endif  // STRATA_BASE_PARSE_NUMBER_H_
