#include "strata/allocation/decorators/registered/decorator_settings.h"

#include <algorithm>
#include <optional>

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

const DecoratorOption& Named(const std::vector<DecoratorOption>& options,
                             std::string_view name) {
  std::string known;
  for (const DecoratorOption& option : options) {
    if (option.name == name) return option;
    known += (known.empty() ? "" : ", ") + option.name;
  }
  throw std::invalid_argument("unknown option '" + std::string(name) +
                              "' (known: " + known + ")");
}

}  // namespace

DecoratorSettings::Value DecoratorSettings::Parse(const DecoratorOption& option,
                                                  std::string_view text) {
  std::optional<Value> value;
  if (option.type == "String") value = std::string(text);
  if (option.type == "Bytes") value = ParseBytes(text);
  if (option.type == "Bool") value = ParseBool(text);
  if (option.type == "Uint64") value = ParseNumber<std::uint64_t>(text);
  if (option.type == "Double") value = ParseNumber<double>(text);
  if (value) return *value;
  throw std::invalid_argument(option.name + ": '" + std::string(text) +
                              "' is not a value of type " + option.type);
}

DecoratorSettings::DecoratorSettings(
    const std::vector<DecoratorOption>& options, std::string_view text) {
  for (const DecoratorOption& option : options) {
    values_.emplace(option.name, Parse(option, option.default_value));
  }
  while (!text.empty()) {
    std::string_view value = TakePart(text, ':');
    const bool is_alone = value.find('=') == std::string_view::npos;
    const DecoratorOption& option = Named(options, TakePart(value, '='));
    if (is_alone && option.type == "Bool") value = "true";
    values_[option.name] = Parse(option, value);
  }
}

}  // namespace strata
