#include "strata/facade/gflags/command_line.h"

#include <gflags/gflags.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

namespace strata {
namespace {

constexpr std::array<std::string_view, 9> kReports = {
    "help",    "helpfull",    "helpmatch",
    "helpon",  "helppackage", "helpshort",
    "helpxml", "version",     "tab_completion_word"};
constexpr std::array<std::string_view, 5> kYes = {"1", "t", "true", "y", "yes"};
constexpr std::array<std::string_view, 5> kNo = {"0", "f", "false", "n", "no"};

bool IsOneOf(std::string_view text, const auto& all) {
  return std::find(all.begin(), all.end(), text) != all.end();
}

struct Argument {
  std::string name;
  std::optional<std::string> value;
};

// `text` begins with a dash.
Argument Split(std::string_view text) {
  text.remove_prefix(text.starts_with("--") ? 2 : 1);
  const std::size_t equals = text.find('=');
  Argument argument{std::string(text.substr(0, equals)), std::nullopt};
  if (equals != std::string_view::npos) {
    argument.value = std::string(text.substr(equals + 1));
  }
  return argument;
}

class Setter {
 public:
  explicit Setter(const std::vector<std::string>& arguments)
      : arguments_(arguments) {}

  CommandLine Run() {
    while (next_ < arguments_.size()) {
      const std::string& text = arguments_[next_++];
      if (text.size() > 1 && text.front() == '-') {
        Take(Split(text));
      } else {
        result_.others.push_back(text);
      }
    }
    for (const std::string& name : unknown_) {
      if (IsTolerated(name)) continue;
      Complain("unknown command line flag '" + name + "'");
    }
    return std::move(result_);
  }

 private:
  // True if --undefok names the flag. As in gflags, NAME there also covers
  // --noNAME.
  bool IsTolerated(const std::string& name) const {
    return IsOneOf(name, tolerated_) ||
           (name.starts_with("no") && IsOneOf(name.substr(2), tolerated_));
  }

  void Complain(std::string error) {
    result_.errors.push_back(std::move(error));
  }

  void Take(Argument argument) {
    gflags::CommandLineFlagInfo flag;
    if (!gflags::GetCommandLineFlagInfo(argument.name.c_str(), &flag)) {
      const std::string name =
          argument.name.starts_with("no") ? argument.name.substr(2) : "";
      if (!gflags::GetCommandLineFlagInfo(name.c_str(), &flag)) {
        unknown_.push_back(argument.name);
        return;
      }
      if (flag.type != "bool") {
        return Complain("boolean value (" + argument.name + ") specified for " +
                        flag.type + " command line flag");
      }
      argument.value = "0";
    }
    if (!argument.value && flag.type == "bool") argument.value = "1";
    if (!argument.value) {
      if (next_ == arguments_.size()) {
        return Complain("flag '" + flag.name + "' is missing its argument");
      }
      argument.value = arguments_[next_++];
    }
    Set(flag, *argument.value);
  }

  void Set(const gflags::CommandLineFlagInfo& flag, const std::string& value) {
    if (flag.name == "undefok") return Tolerate(value);
    if (IsOneOf(flag.name, kReports)) {
      const bool is_wanted =
          flag.type == "bool" ? IsOneOf(value, kYes) : !value.empty();
      if (is_wanted) result_.reports.push_back(flag.name);
      if (flag.type != "bool" || is_wanted || IsOneOf(value, kNo)) return;
    } else if (!gflags::SetCommandLineOption(flag.name.c_str(), value.c_str())
                    .empty()) {
      return;
    }
    Complain("illegal value '" + value + "' specified for " + flag.type +
             " flag '" + flag.name + "'");
  }

  void Tolerate(std::string_view names) {
    while (true) {
      const std::size_t comma = names.find(',');
      tolerated_.emplace_back(names.substr(0, comma));
      if (comma == std::string_view::npos) return;
      names.remove_prefix(comma + 1);
    }
  }

  const std::vector<std::string>& arguments_;
  std::size_t next_ = 0;
  CommandLine result_;
  std::vector<std::string> unknown_;    // names without a flag
  std::vector<std::string> tolerated_;  // values of --undefok
};

}  // namespace

CommandLine SetFlags(const std::vector<std::string>& arguments) {
  return Setter(arguments).Run();
}

}  // namespace strata
