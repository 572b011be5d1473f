#ifndef STRATA_ALLOCATION_OPTION_FIELDS_H_
#define STRATA_ALLOCATION_OPTION_FIELDS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>

#include "strata/base/require_cxx20.h"

namespace strata {

// The value of a default of type Bytes: "512", "64MiB", "32TiB".
constexpr std::uint64_t BytesOfDefault(const char* text) {
  std::uint64_t bytes = 0;
  for (; *text >= '0' && *text <= '9'; ++text) {
    bytes = bytes * 10 + static_cast<std::uint64_t>(*text - '0');
  }
  unsigned shift = 0;
  for (const char unit : {'K', 'M', 'G', 'T'}) {
    shift += 10;
    if (*text == unit) return bytes << shift;
  }
  if (*text != '\0') throw std::invalid_argument(text);
  return bytes;
}

// Returns the index of `value` in `known`. `what` is a noun for the value.
//
// Errors: std::invalid_argument that names the option, its value and `known`.
inline std::size_t ChoiceOf(const char* option, const char* what,
                            const std::string& value,
                            std::initializer_list<const char*> known) {
  const auto* const found = std::find(known.begin(), known.end(), value);
  if (found != known.end()) {
    return static_cast<std::size_t>(found - known.begin());
  }
  std::string names;
  for (const char* name : known) {
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  throw std::invalid_argument(std::string(option) + ": unknown " + what + " '" +
                              value + "' (known: " + names + ")");
}

}  // namespace strata

// Expands a row of an options.def to a member.
// `#define STRATA_OWN_OPTION STRATA_OPTION_FIELD` before the include, inside a
// struct.
#define STRATA_OPTION_FIELD(Type, name, member, default_value, help) \
  STRATA_OPTION_FIELD_##Type(member, default_value)
#define STRATA_OPTION_FIELD_Bool(member, value) bool member = value;
#define STRATA_OPTION_FIELD_Int64(member, value) std::int64_t member = value;
#define STRATA_OPTION_FIELD_Uint64(member, value) std::uint64_t member = value;
#define STRATA_OPTION_FIELD_Double(member, value) double member = value;
#define STRATA_OPTION_FIELD_String(member, value) std::string member = value;
#define STRATA_OPTION_FIELD_Bytes(member, value) \
  std::uint64_t member = ::strata::BytesOfDefault(value);

#endif  // STRATA_ALLOCATION_OPTION_FIELDS_H_
