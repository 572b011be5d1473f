#ifndef STRATA_FACADE_FLAGS_H_
#define STRATA_FACADE_FLAGS_H_

#include <functional>
#include <string>
#include <vector>

#include "strata/facade/options.h"

namespace strata {

// The options of options.def as gflags, in a separate library (strata::flags):
// strata::facade knows no flags.
//
// Model: the flags are registered by the first call of a function below, not
//   before main(). If the program has defined a flag with the name and type of
//   an option, Strata reads that flag. It changes no other flag, and neither
//   the name of the program nor the exit function of gflags.
//   A flag of Strata that the command line does not set reads its value from
//   the environment variable FLAGS_<name>, if there is one; otherwise its
//   default applies.

// Registers the flags, for a program that calls gflags::ParseCommandLineFlags
// itself. Repeated calls do nothing.
//
// Errors: std::invalid_argument naming a flag that the program has defined with
//   another type. Then no flag is registered.
// Threads: any thread.
void RegisterFlags();

// Parses the flags among `arguments` (without the program's name) and returns
// the other arguments, in their order. No argument after "--" is a flag.
// ExpandFlagFiles expands --flagfile. --help prints the options and ends the
// process with exit code 0.
//
// Errors: the process ends with exit code 2 and one line on stderr for each
//   error: an unknown flag, also in a flag file; a value that the flag does not
//   accept; a wrong flag file; an error of RegisterFlags.
// Threads: call it once, before there are threads that read flags.
std::vector<std::string> ParseCommandLine(
    const std::vector<std::string>& arguments);

// The options that the flags set.
//
// Errors: std::invalid_argument naming the flag or environment variable with
//   the wrong value; also the errors of RegisterFlags and Options::Validate.
Options OptionsFromFlags();

// Whether the command line or the environment sets the flag of an option, even
// to its default. Call it after OptionsFromFlags or OptionsPerStrategy.
bool IsFlagSet(const std::string& name);

// OptionsFromFlags for a comparison: allocator_strategy may be a list,
// separated by commas. The result has one element for each name in it. A name
// for which `is_other` returns true need not be a strategy of this build; the
// caller handles it.
//
// Errors: also the exceptions of `is_other`.
std::vector<Options> OptionsPerStrategy(
    const std::function<bool(const std::string& name)>& is_other = nullptr);

}  // namespace strata

#endif  // STRATA_FACADE_FLAGS_H_
