#ifndef STRATA_TESTS_TOOLS_READERS_PICKLE_PICKLE_TEXT_H_
#define STRATA_TESTS_TOOLS_READERS_PICKLE_PICKLE_TEXT_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace strata::tools {

inline std::string LittleEndian(std::uint64_t number, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) {
    text += static_cast<char>(number >> (8 * i) & 0xff);
  }
  return text;
}

// The opcodes that build `json`. Supports the kinds that a snapshot needs.
inline std::string PickleOpcodes(const nlohmann::json& json) {
  std::string text;
  if (json.is_number_integer()) {
    // Nine bytes, for integers from -2^63 to 2^64 - 1.
    text = "\x8a\x09";
    text += LittleEndian(json.get<std::uint64_t>(), 8);
    const bool is_negative =
        !json.is_number_unsigned() && json.get<std::int64_t>() < 0;
    text += is_negative ? '\xff' : '\0';
  } else if (json.is_string()) {
    const auto& value = json.get_ref<const std::string&>();
    text = "X";
    text += LittleEndian(value.size(), 4);
    text += value;
  } else if (json.is_array()) {
    text = "](";
    for (const auto& item : json) text += PickleOpcodes(item);
    text += 'e';
  } else {
    text = "}(";
    for (const auto& [key, value] : json.items()) {
      text += PickleOpcodes(key);
      text += PickleOpcodes(value);
    }
    text += 'u';
  }
  return text;
}

// A whole pickle of protocol 2.
inline std::string PickleOf(const nlohmann::json& json) {
  std::string text = "\x80\x02";
  text += PickleOpcodes(json);
  return text += '.';
}

}  // namespace strata::tools

#endif  // STRATA_TESTS_TOOLS_READERS_PICKLE_PICKLE_TEXT_H_
