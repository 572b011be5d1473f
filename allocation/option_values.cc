#include "strata/allocation/option_values.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>

#include "strata/base/parse_number.h"
#include "strata/base/size.h"

namespace strata {
namespace {

std::optional<bool> ParseBool(std::string_view text) {
  if (text == "true" || text == "1") return true;
  if (text == "false" || text == "0") return false;
  return std::nullopt;
}

// Removes the part of `text` before `separator`, and returns it.
std::string_view TakePart(std::string_view& text, char separator) {
  const std::size_t at = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return part;
}

const RegisteredOption& Named(const std::vector<RegisteredOption>& options,
                              std::string_view name) {
  std::string known;
  for (const RegisteredOption& option : options) {
    if (option.name == name) return option;
    known += (known.empty() ? "" : ", ") + option.name;
  }
  throw std::invalid_argument("unknown option '" + std::string(name) +
                              "' (known: " + known + ")");
}

using Value = std::variant<bool, std::uint64_t, double, std::string>;

Value Parse(std::string_view name, std::string_view type,
            std::string_view text) {
  std::optional<Value> value;
  if (type == "String") value = std::string(text);
  if (type == "Bytes") value = ParseBytes(text);
  if (type == "Bool") value = ParseBool(text);
  if (type == "Uint64") value = ParseNumber<std::uint64_t>(text);
  if (type == "Double") value = ParseNumber<double>(text);
  if (value) return *value;
  throw std::invalid_argument(std::string(name) + ": '" + std::string(text) +
                              "' is not a value of type " + std::string(type));
}

bool IsWord(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_';
  });
}

}  // namespace

std::vector<RegisteredOption> WithFlagTexts(
    std::vector<RegisteredOption> options, const std::string& name,
    const OptionTexts& texts) {
  for (RegisteredOption& option : options) {
    const auto found = texts.find(FlagOf(name, option));
    if (found != texts.end()) option.default_value = found->second;
  }
  return options;
}

void CheckOptions(const std::string& name,
                  const std::vector<RegisteredOption>& options) {
  std::set<std::string_view> names;
  for (const RegisteredOption& option : options) {
    const auto refuse = [&](const char* why) {
      throw std::invalid_argument("'" + option.name + "' " + why);
    };
    if (option.name.empty()) refuse("is no name");
    if (!IsWord(FlagOf(name, option))) {
      refuse("cannot be a flag: the name is not a word");
    }
    if (!names.insert(option.name).second) refuse("is there twice");
  }
  const OptionValues defaults(options, "");
}

void CheckOptionText(std::string_view name, std::string_view type,
                     std::string_view text) {
  static_cast<void>(Parse(name, type, text));
}

OptionValues::OptionValues(const std::vector<RegisteredOption>& options,
                           std::string_view text) {
  for (const RegisteredOption& option : options) {
    values_.emplace(option.name,
                    Parse(option.name, option.type, option.default_value));
  }
  std::set<std::string_view> names;
  while (!text.empty()) {
    std::string_view value = TakePart(text, ':');
    const bool is_alone = value.find('=') == std::string_view::npos;
    const RegisteredOption& option = Named(options, TakePart(value, '='));
    if (!names.insert(option.name).second) {
      throw std::invalid_argument("'" + option.name + "' is set twice");
    }
    if (is_alone && option.type == "Bool") value = "true";
    values_[option.name] = Parse(option.name, option.type, value);
  }
}

}  // namespace strata
