#ifndef STRATA_FACADE_FLAGS_H_
#define STRATA_FACADE_FLAGS_H_

#include <functional>
#include <string>
#include <vector>

#include "strata/facade/options.h"

namespace strata {

// The options of options.def as gflags, in a library of their own
// (strata::flags): strata::facade knows no flags.
//
// Model: a flag that the command line does not set takes its value from the
//   environment variable FLAGS_<name>, if there is one, and its default
//   otherwise.

// Parses the flags among `arguments` (without the program's name) and returns
// the others, in their order. Everything after "--" is no flag. --flagfile is
// expanded by ExpandFlagFiles. --help prints the options and ends the process
// with exit code 0.
//
// Errors: an unknown flag, also in a flag file, a value that it cannot take, or
//   a flag file that is wrong ends the process with exit code 2 and one line on
//   stderr for each.
// Threads: call it once, before there are threads that read flags.
std::vector<std::string> ParseCommandLine(
    const std::vector<std::string>& arguments);

// The options that the flags ask for.
//
// Errors: std::invalid_argument naming the flag or environment variable whose
//   value is wrong; also what Options::Validate throws.
Options OptionsFromFlags();

// Whether the command line or the environment sets the flag, be it to its
// default. After OptionsFromFlags or OptionsPerStrategy. The flag is an
// option's.
bool IsFlagSet(const std::string& name);

// The same as OptionsFromFlags for a comparison: allocator_strategy may be a
// list, separated by commas, and the result has one element for each name in
// it. A name for which `is_other` holds need not be a strategy of this build:
// the caller knows what to do with it.
//
// Errors: also what `is_other` throws.
std::vector<Options> OptionsPerStrategy(
    const std::function<bool(const std::string& name)>& is_other = nullptr);

}  // namespace strata

#endif  // STRATA_FACADE_FLAGS_H_
