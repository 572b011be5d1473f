#include "strata/tools/commands/arguments.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>

#include "strata/facade/flags.h"

namespace strata::tools {
namespace {

// "name" or "name=value" without the leading dashes, and with underscores for
// dashes in the name; empty if it is no flag.
std::string FlagText(std::string_view argument) {
  const std::size_t name = argument.find_first_not_of('-');
  if (name == std::string_view::npos || name < 1 || name > 2) return {};
  std::string text(argument.substr(name));
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(
                                      std::min(text.find('='), text.size()));
  std::replace(text.begin(), end, '-', '_');
  return text;
}

bool ParseBool(const std::string& name, std::string_view value) {
  for (const std::string_view yes : {"true", "t", "yes", "y", "1"}) {
    if (value == yes) return true;
  }
  for (const std::string_view no : {"false", "f", "no", "n", "0"}) {
    if (value == no) return false;
  }
  throw std::invalid_argument("--" + name + ": '" + std::string(value) +
                              "' is not true or false");
}

}  // namespace

bool Arguments::TakeBool(const std::string& name, bool default_value) {
  bool value = default_value;
  std::vector<std::string> others;
  auto argument = rest_.begin();
  for (; argument != rest_.end() && *argument != "--"; ++argument) {
    const std::string text = FlagText(*argument);
    if (text == name) {
      value = true;
    } else if (text == "no" + name) {
      value = false;
    } else if (text.starts_with(name + "=")) {
      value = ParseBool(name, std::string_view(text).substr(name.size() + 1));
    } else {
      others.push_back(*argument);
    }
  }
  others.insert(others.end(), argument, rest_.end());
  rest_ = std::move(others);
  return value;
}

bool Arguments::TakeHelp() {
  const bool is_short = TakeBool("h", false);
  return TakeBool("help", false) || is_short;
}

std::optional<std::string> Arguments::TakeText(const std::string& name) {
  std::vector<std::string> values = TakeTexts(name);
  if (values.empty()) return std::nullopt;
  return std::move(values.back());
}

std::vector<std::string> Arguments::TakeTexts(const std::string& name) {
  std::vector<std::string> values;
  std::vector<std::string> others;
  auto argument = rest_.begin();
  for (; argument != rest_.end() && *argument != "--"; ++argument) {
    const std::string text = FlagText(*argument);
    if (text == name) {
      if (++argument == rest_.end()) {
        throw std::invalid_argument("--" + name + " lacks its value");
      }
      values.push_back(*argument);
    } else if (text.starts_with(name + "=")) {
      values.push_back(text.substr(name.size() + 1));
    } else {
      others.push_back(*argument);
    }
  }
  others.insert(others.end(), argument, rest_.end());
  rest_ = std::move(others);
  return values;
}

std::string Arguments::TakeChoice(const std::string& name,
                                  const std::string& default_value,
                                  const std::vector<std::string>& known) {
  const std::string value = TakeText(name, default_value);
  std::string names;
  for (const std::string& one : known) {
    if (one == value) return one;
    names += (names.empty() ? "" : ", ") + one;
  }
  throw std::invalid_argument("--" + name + ": unknown value '" + value +
                              "' (known: " + names + ")");
}

std::vector<std::string> Arguments::ParseFlags() const {
  std::vector<std::string> others = ParseCommandLine(rest_);
  // The command checks the names of strategies.
  const Options options =
      OptionsPerStrategy([](const std::string&) { return true; }).front();
  // These messages have the level below warnings.
  if (FLAGS_v > 0 || options.enable_gpu_memory_usage_log) {
    FLAGS_minloglevel = google::GLOG_INFO;
  }
  return others;
}

}  // namespace strata::tools
