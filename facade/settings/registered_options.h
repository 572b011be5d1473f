#ifndef STRATA_FACADE_SETTINGS_REGISTERED_OPTIONS_H_
#define STRATA_FACADE_SETTINGS_REGISTERED_OPTIONS_H_

#include <string>
#include <string_view>
#include <vector>

#include "strata/facade/options.h"

namespace strata {

// The options of strategies and decorators that the program registered, under
// the names of their flags.
//
// Errors: std::invalid_argument naming an option whose flag has another option
//   already.
std::vector<OptionInfo> RegisteredOptionTable();

// Sets the option `name`. False if no strategy or decorator registered it.
//
// Errors: std::invalid_argument naming the option and its invalid value.
bool SetRegisteredOption(Options& options, std::string_view name,
                         std::string_view value);

// The text of an option of RegisteredOptionTable().
std::string RegisteredText(const Options& options,
                           const OptionInfo& registered);

}  // namespace strata

#endif  // STRATA_FACADE_SETTINGS_REGISTERED_OPTIONS_H_
