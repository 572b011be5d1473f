#include "strata/facade/flags.h"

#include <gflags/gflags.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "strata/facade/gflags/command_line.h"
#include "strata/facade/settings/flag_file.h"

namespace strata {
namespace {

constexpr const char* kStrategyFlag = "allocator_strategy";

[[noreturn]] void ExitOnWrongUse(const std::vector<std::string>& errors) {
  for (const std::string& error : errors) {
    std::fprintf(stderr, "ERROR: %s\n", error.c_str());
  }
  std::exit(2);
}

// Expanded here, because gflags ignores unknown flags in a file.
std::vector<std::string> PrepareOrExit(
    const std::vector<std::string>& arguments) {
  try {
    RegisterFlags();
    return ExpandFlagFiles(arguments);
  } catch (const std::invalid_argument& error) {
    ExitOnWrongUse({error.what()});
  }
}

// Sets a flag that the command line did not set from its environment variable,
// so that the rules of the command line apply to it. A flag of the program is
// the program's to set.
void TakeFromEnvironment(const char* name, const std::string& type) {
  if (IsFlagOfProgram(name)) return;
  const std::string variable = std::string("FLAGS_") + name;
  const char* value = std::getenv(variable.c_str());
  if (value == nullptr) return;
  const bool accepted = !gflags::SetCommandLineOptionWithMode(
                             name, value, gflags::SET_FLAG_IF_DEFAULT)
                             .empty();
  // Sizes are strings in gflags: only Options can check them.
  try {
    if (!accepted) throw std::invalid_argument("");
    if (type == "Bytes") Options().Set(name, value);
  } catch (const std::invalid_argument&) {
    throw std::invalid_argument("environment variable " + variable + ": '" +
                                value + "' is not a value of type " + type);
  }
}

void PrintHelp() {
  for (const OptionInfo& option : OptionTable()) {
    std::printf("  --%s (%s, default '%s')\n      %s\n", option.name,
                option.type, option.default_value.c_str(), option.help);
  }
}

struct FlagValues {
  Options options;                 // all but allocator_strategy
  std::string allocator_strategy;  // value of the flag
  bool strategy_was_set = false;
};

// The value of the flag of an option. Nothing if another thread has registered
// the option since RegisterFlags, and for a registered option that the user
// does not set: the flag may have the default of a library that is unloaded.
std::optional<std::string> ValueOf(const OptionInfo& option) {
  gflags::CommandLineFlagInfo info;
  if (!gflags::GetCommandLineFlagInfo(option.name, &info)) return std::nullopt;
  TakeFromEnvironment(option.name, option.type);
  gflags::GetCommandLineFlagInfo(option.name, &info);
  if (option.is_registered && info.is_default &&
      !IsFlagOfProgram(option.name)) {
    return std::nullopt;
  }
  return std::move(info.current_value);
}

FlagValues ReadFlags() {
  RegisterFlags();
  FlagValues values;
  for (const OptionInfo& option : OptionTable()) {
    const std::optional<std::string> value = ValueOf(option);
    if (!value) continue;
    if (std::string_view(option.name) == kStrategyFlag) {
      values.allocator_strategy = *value;
      values.strategy_was_set = IsFlagSet(option.name);
    } else {
      values.options.Set(option.name, *value);
    }
  }
  for (const RemovedOption& option : RemovedOptions()) {
    TakeFromEnvironment(option.name, option.type);
    if (IsFlagSet(option.name)) values.options.Set(option.name, "");
  }
  return values;
}

Options WithStrategy(const FlagValues& values, const std::string& strategy,
                     bool strategy_is_known) {
  Options options = values.options;
  options.allocator_strategy = strategy;
  options.Validate(values.strategy_was_set, strategy_is_known);
  return options;
}

}  // namespace

std::vector<std::string> ParseCommandLine(
    const std::vector<std::string>& arguments) {
  const std::vector<std::string> all = PrepareOrExit(arguments);
  // No argument after "--" is a flag.
  const auto end = std::find(all.begin(), all.end(), "--");
  CommandLine line = SetFlags(std::vector<std::string>(all.begin(), end));
  bool wants_help = false;
  for (const std::string& report : line.reports) {
    if (report == "help") {
      wants_help = true;
    } else {
      // gflags' reports describe its own flags, not the program.
      line.errors.push_back("--" + report + ": there is only --help");
    }
  }
  if (!line.errors.empty()) ExitOnWrongUse(line.errors);
  if (wants_help) {
    PrintHelp();
    std::exit(0);
  }
  if (end != all.end()) {
    line.others.insert(line.others.end(), end + 1, all.end());
  }
  return std::move(line.others);
}

Options OptionsFromFlags() {
  const FlagValues values = ReadFlags();
  return WithStrategy(values, values.allocator_strategy,
                      /*strategy_is_known=*/false);
}

bool IsFlagSet(const std::string& name) {
  RegisterFlags();
  return !gflags::GetCommandLineFlagInfoOrDie(name.c_str()).is_default;
}

std::vector<Options> OptionsPerStrategy(
    const std::function<bool(const std::string&)>& is_other) {
  const FlagValues values = ReadFlags();
  std::vector<Options> result;
  std::string_view rest = values.allocator_strategy;
  while (true) {
    const std::size_t comma = rest.find(',');
    const std::string name(rest.substr(0, comma));
    result.push_back(
        WithStrategy(values, name, is_other != nullptr && is_other(name)));
    if (comma == std::string_view::npos) return result;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace strata
