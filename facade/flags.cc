#include "strata/facade/flags.h"

#include <gflags/gflags.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "strata/facade/settings/flag_file.h"

#define STRATA_FLAG_Bool DEFINE_bool
#define STRATA_FLAG_Int64 DEFINE_int64
#define STRATA_FLAG_Uint64 DEFINE_uint64
#define STRATA_FLAG_Double DEFINE_double
#define STRATA_FLAG_String DEFINE_string
#define STRATA_FLAG_Bytes DEFINE_string
#define STRATA_OPTION(Type, name, member, default_value, help) \
  STRATA_FLAG_##Type(name, default_value, help);
#include "strata/facade/options.def"
#undef STRATA_OPTION
#define STRATA_REMOVED_OPTION(Type, name, default_value, why) \
  STRATA_FLAG_##Type(name, default_value, why);
#include "strata/facade/settings/removed_options.def"
#undef STRATA_REMOVED_OPTION
#undef STRATA_FLAG_Bytes
#undef STRATA_FLAG_String
#undef STRATA_FLAG_Double
#undef STRATA_FLAG_Uint64
#undef STRATA_FLAG_Int64
#undef STRATA_FLAG_Bool

namespace GFLAGS_NAMESPACE {
// Declared for gflags' own tests, not in an installed header: the function that
// gflags calls, with 1, when the command line is wrong.
extern void (*gflags_exitfunc)(int);
}  // namespace GFLAGS_NAMESPACE

namespace strata {
namespace {

constexpr const char* kStrategyFlag = "allocator_strategy";

[[noreturn]] void ExitOnWrongUse(int /*code*/) { std::exit(2); }

// Expanded here, because gflags ignores unknown flags in a file.
std::vector<std::string> ExpandOrExit(
    const std::vector<std::string>& arguments) {
  try {
    return ExpandFlagFiles(arguments);
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "ERROR: %s\n", error.what());
    ExitOnWrongUse(0);
  }
}

// Sets a flag that the command line did not set from its environment variable,
// so that the rules of the command line apply to it.
void TakeFromEnvironment(const char* name, const std::string& type) {
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

// Whether the flag differs from its default.
bool IsSet(const char* name) {
  gflags::CommandLineFlagInfo info;
  return gflags::GetCommandLineFlagInfo(name, &info) &&
         info.current_value != info.default_value;
}

// gflags' reports describe its own flags, not the program.
void RefuseReports() {
  for (const char* name :
       {"helpfull", "helpmatch", "helpon", "helppackage", "helpshort",
        "helpxml", "version", "tab_completion_word"}) {
    if (!IsSet(name)) continue;
    std::fprintf(stderr, "ERROR: --%s: there is only --help\n", name);
    ExitOnWrongUse(0);
  }
}

struct FlagValues {
  Options options;                 // all but allocator_strategy
  std::string allocator_strategy;  // value of the flag
  bool strategy_was_set = false;
};

FlagValues ReadFlags() {
  FlagValues values;
  for (const OptionInfo& option : OptionTable()) {
    TakeFromEnvironment(option.name, option.type);
    const gflags::CommandLineFlagInfo info =
        gflags::GetCommandLineFlagInfoOrDie(option.name);
    if (std::string_view(option.name) == kStrategyFlag) {
      values.allocator_strategy = info.current_value;
      values.strategy_was_set = IsFlagSet(option.name);
    } else {
      values.options.Set(option.name, info.current_value);
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
  const std::vector<std::string> all = ExpandOrExit(arguments);
  // gflags would move the arguments after "--" before all others.
  const auto end = std::find(all.begin(), all.end(), "--");
  // gflags reorders the arguments, stores pointers, and expects the program's
  // name first.
  std::vector<std::string> copies = {"strata"};
  copies.insert(copies.end(), all.begin(), end);
  std::vector<char*> pointers;
  for (std::string& copy : copies) pointers.push_back(copy.data());
  pointers.push_back(nullptr);
  int count = static_cast<int>(copies.size());
  char** values = pointers.data();
  GFLAGS_NAMESPACE::gflags_exitfunc = &ExitOnWrongUse;
  gflags::ParseCommandLineNonHelpFlags(&count, &values, /*remove_flags=*/true);
  RefuseReports();
  if (IsSet("help")) {
    PrintHelp();
    std::exit(0);
  }
  std::vector<std::string> others(values + 1, values + count);
  if (end != all.end()) {
    others.insert(others.end(), end + 1, all.end());
  }
  return others;
}

Options OptionsFromFlags() {
  const FlagValues values = ReadFlags();
  return WithStrategy(values, values.allocator_strategy,
                      /*strategy_is_known=*/false);
}

bool IsFlagSet(const std::string& name) {
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
