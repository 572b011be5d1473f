#include "strata/base/size.h"

#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>

#include "strata/base/parse_number.h"

namespace strata {
namespace {

constexpr std::array<const char*, 7> kUnits = {"B",   "KiB", "MiB", "GiB",
                                               "TiB", "PiB", "EiB"};

// Power of 1024 of a unit; nothing if `unit` is not a unit.
std::optional<int> UnitPower(std::string_view unit) {
  if (unit.empty()) return 0;
  std::string lower;
  for (const char c : unit) {
    lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  if (lower == "b") return 0;
  static constexpr std::string_view kPrefixes = "kmgtpe";
  const std::size_t power = kPrefixes.find(lower[0]);
  if (power == std::string_view::npos) return std::nullopt;
  const std::string_view rest = std::string_view(lower).substr(1);
  if (rest.empty() || rest == "b" || rest == "ib") {
    return static_cast<int>(power) + 1;
  }
  return std::nullopt;
}

}  // namespace

std::string HumanBytes(std::uint64_t bytes) {
  std::size_t unit = 0;
  auto value = static_cast<double>(bytes);
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s",
                value, kUnits[unit]);
  return text.data();
}

std::optional<std::uint64_t> ParseBytes(std::string_view text) {
  std::size_t digits = 0;
  while (digits < text.size() &&
         (std::isdigit(static_cast<unsigned char>(text[digits])) != 0 ||
          text[digits] == '.')) {
    ++digits;
  }
  if (digits == 0) return std::nullopt;
  const std::string_view number = text.substr(0, digits);
  std::string_view unit = text.substr(digits);
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  const std::optional<int> power = UnitPower(unit);
  if (!power) return std::nullopt;

  if (number.find('.') == std::string_view::npos) {
    const auto whole = ParseNumber<std::uint64_t>(number);
    const int shift = 10 * *power;
    if (!whole || *whole == 0) return whole;
    if (shift >= 64 || *whole > (UINT64_MAX >> shift)) return std::nullopt;
    return *whole << shift;
  }
  const auto value = ParseNumber<double>(number);
  if (!value) return std::nullopt;
  const double bytes = std::ldexp(*value, 10 * *power);
  if (!(bytes < std::ldexp(1.0, 64))) return std::nullopt;
  return static_cast<std::uint64_t>(bytes);
}

}  // namespace strata
