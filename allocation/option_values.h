#ifndef STRATA_ALLOCATION_OPTION_VALUES_H_
#define STRATA_ALLOCATION_OPTION_VALUES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "strata/base/require_cxx20.h"

namespace strata {

// An option of a strategy or decorator from outside the tree.
struct RegisteredOption {
  std::string name;
  std::string type;  // Bool, Uint64, Double, Bytes ("80GiB") or String
  std::string default_value;
  std::string help;
};

// Texts of registered options by the names of their flags, as the user sets
// them.
using OptionTexts = std::map<std::string, std::string, std::less<>>;

// Name of the flag of `option`: NAME_OPTION, where NAME is the name of the
// strategy or decorator.
inline std::string FlagOf(const std::string& name,
                          const RegisteredOption& option) {
  return name + "_" + option.name;
}

// Returns `options` with other defaults: the texts of the flags that the user
// set.
std::vector<RegisteredOption> WithFlagTexts(
    std::vector<RegisteredOption> options, const std::string& name,
    const OptionTexts& texts);

// Errors: std::invalid_argument naming the option of the strategy or decorator
//   `name`: two options have this name, its flag is not a word, or its type or
//   default is wrong.
void CheckOptions(const std::string& name,
                  const std::vector<RegisteredOption>& options);

// Errors: std::invalid_argument naming `name` and `text`, if no value of `type`
//   has this text.
void CheckOptionText(std::string_view name, std::string_view type,
                     std::string_view text);

// Values of the options of one strategy or decorator in a chain.
class OptionValues {
 public:
  OptionValues() = default;
  // `text` sets options: "most_bytes=1GiB:warn". A Bool needs no value. An
  // option that `text` does not name has its default.
  //
  // Errors: std::invalid_argument naming the unknown option (and the known
  //   ones), the option that is set twice, or the option and its invalid value.
  OptionValues(const std::vector<RegisteredOption>& options,
               std::string_view text);

  // Value of an option: bool, std::uint64_t (for Uint64 and Bytes), double or
  // std::string.
  //
  // Lifetime: as this object; copy a String.
  // Errors: std::logic_error if no option has this name and type.
  template <class Type>
  const Type& Get(std::string_view name) const {
    const auto found = values_.find(name);
    const Type* value =
        found == values_.end() ? nullptr : std::get_if<Type>(&found->second);
    if (value != nullptr) return *value;
    throw std::logic_error("no option '" + std::string(name) +
                           "' of this type was registered");
  }

 private:
  using Value = std::variant<bool, std::uint64_t, double, std::string>;

  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_OPTION_VALUES_H_
