#ifndef STRATA_TOOLS_COMMANDS_ARGUMENTS_H_
#define STRATA_TOOLS_COMMANDS_ARGUMENTS_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strata/facade/settings/flag_file.h"

namespace strata::tools {

// The arguments of a subcommand. The subcommand removes its own arguments, and
// parses the rest as flags.
//
// Model: the syntax of gflags: --name, --noname, --name=value, --name value,
//   with one or two dashes, and dashes in the name for underscores. If an
//   argument is repeated, the last one counts. Arguments after "--" are not
//   read.
// Errors: std::invalid_argument naming the argument.
class Arguments {
 public:
  // Expands --flagfile: its arguments count as if written in its place.
  //
  // Errors: as ExpandFlagFiles.
  Arguments(int argc, char** argv)
      : rest_(ExpandFlagFiles({argv, argv + argc})) {}

  bool TakeBool(const std::string& name, bool default_value);
  // The value is one of `known`.
  std::string TakeChoice(const std::string& name,
                         const std::string& default_value,
                         const std::vector<std::string>& known);
  std::string TakeText(const std::string& name,
                       const std::string& default_value) {
    return TakeText(name).value_or(default_value);
  }
  // The last value of the argument; nothing if it is missing.
  std::optional<std::string> TakeText(const std::string& name);
  // All values of the argument, in order.
  std::vector<std::string> TakeTexts(const std::string& name);
  // --help, or -h.
  bool TakeHelp();
  // Reads the flags of Strata and of glog among the rest, and returns the other
  // arguments. With --v, messages of all levels go to stderr; so they do if
  // a flag of Strata requests a log.
  //
  // Errors: as ParseCommandLine and OptionsFromFlags.
  std::vector<std::string> ParseFlags() const;
  // The arguments that were not removed.
  const std::vector<std::string>& rest() const { return rest_; }

 private:
  std::vector<std::string> rest_;
};

}  // namespace strata::tools

#endif  // STRATA_TOOLS_COMMANDS_ARGUMENTS_H_
