#ifndef STRATA_TOOLS_ARGUMENTS_H_
#define STRATA_TOOLS_ARGUMENTS_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strata/facade/flag_file.h"

namespace strata {

// The arguments of a subcommand: it takes its own out, and parses the rest as
// flags.
//
// Model: written as gflags are: --name, --noname, --name=value, --name value,
//   one or two dashes, and dashes in the name for underscores. If an argument
//   is given twice the last one counts. Nothing after "--" is looked at.
// Errors: std::invalid_argument naming the argument.
class Arguments {
 public:
  // --flagfile is expanded: its arguments count as if given in its place.
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
  // Nothing if it is not given; the last one, if it is more than once.
  std::optional<std::string> TakeText(const std::string& name);
  // Each that is given, in order.
  std::vector<std::string> TakeTexts(const std::string& name);
  // --help, or -h.
  bool TakeHelp();
  // Reads the flags of Strata and of glog among the rest and returns what is
  // neither. With --v, messages of all levels go to stderr; those that a flag
  // asks for do anyway.
  //
  // Errors: as ParseCommandLine and OptionsFromFlags.
  std::vector<std::string> ParseFlags() const;
  // What nobody took.
  const std::vector<std::string>& rest() const { return rest_; }

 private:
  std::vector<std::string> rest_;
};

}  // namespace strata

#endif  // STRATA_TOOLS_ARGUMENTS_H_
