#ifndef STRATA_ALLOCATION_DECORATORS_REGISTERED_DECORATOR_SETTINGS_H_
#define STRATA_ALLOCATION_DECORATORS_REGISTERED_DECORATOR_SETTINGS_H_

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

// An option of a registered decorator.
struct DecoratorOption {
  std::string name;
  std::string type;  // Bool, Uint64, Double, Bytes ("80GiB") or String
  std::string default_value;
  std::string help;
};

// Values of the options of one decorator in a chain.
class DecoratorSettings {
 public:
  // `text` sets options: "most_bytes=1GiB:warn". A Bool needs no value. Options
  // that `text` does not name have their defaults.
  //
  // Errors: std::invalid_argument naming the unknown option (and the known
  //   ones), or the option and its invalid value.
  DecoratorSettings(const std::vector<DecoratorOption>& options,
                    std::string_view text);

  // Value of an option: bool, std::uint64_t (for Uint64 and Bytes), double or
  // std::string.
  //
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

  static Value Parse(const DecoratorOption& option, std::string_view text);

  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_DECORATORS_REGISTERED_DECORATOR_SETTINGS_H_
