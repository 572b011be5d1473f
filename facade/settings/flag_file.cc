#include "strata/facade/settings/flag_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "strata/base/quoted.h"

namespace strata {
namespace {

constexpr std::string_view kFlag = "flagfile";
constexpr std::string_view kBlanks = " \t\r\v\f";

class FlagFileExpander {
 public:
  // The text of a flag without its dashes; nullopt if `argument` is no flag.
  static std::optional<std::string_view> FlagText(std::string_view argument) {
    const std::size_t dashes = argument.find_first_not_of('-');
    if (dashes != 1 && dashes != 2) return std::nullopt;
    return argument.substr(dashes);
  }

  void AddAll(const std::vector<std::string>& arguments) {
    for (auto argument = arguments.begin(); argument != arguments.end();
         ++argument) {
      if (*argument == "--") {
        expanded_.insert(expanded_.end(), argument, arguments.end());
        return;
      }
      if (FlagText(*argument) != kFlag) {
        Add(*argument);
      } else if (++argument != arguments.end()) {
        AddFiles(*argument);
      } else {
        throw std::invalid_argument("--flagfile lacks its value");
      }
    }
  }

  std::vector<std::string> expanded() && { return std::move(expanded_); }

 private:
  void Add(const std::string& argument) {
    const std::optional<std::string_view> text = FlagText(argument);
    if (text && text->starts_with(kFlag) && text->size() > kFlag.size() &&
        (*text)[kFlag.size()] == '=') {
      AddFiles(text->substr(kFlag.size() + 1));
    } else {
      expanded_.push_back(argument);
    }
  }

  void AddFiles(std::string_view paths) {
    while (true) {
      const std::size_t comma = paths.find(',');
      AddFile(std::string(paths.substr(0, comma)));
      if (comma == std::string_view::npos) return;
      paths.remove_prefix(comma + 1);
    }
  }

  void AddFile(const std::string& path) {
    if (std::find(open_.begin(), open_.end(), path) != open_.end()) {
      throw std::invalid_argument("--flagfile=" + path + ": it names itself");
    }
    errno = 0;
    std::ifstream file(path);
    std::string line;
    open_.push_back(path);
    for (int number = 1; std::getline(file, line); ++number) {
      const std::size_t begin = line.find_first_not_of(kBlanks);
      if (begin == std::string::npos || line[begin] == '#') continue;
      line = line.substr(begin, line.find_last_not_of(kBlanks) + 1 - begin);
      if (!FlagText(line)) {
        throw std::invalid_argument("--flagfile=" + path + ": line " +
                                    std::to_string(number) + ": " +
                                    Quoted(line) + " is not a flag");
      }
      Add(line);
    }
    open_.pop_back();
    if (file.eof()) return;
    throw std::invalid_argument("--flagfile=" + path + ": " +
                                std::strerror(errno != 0 ? errno : EIO));
  }

  std::vector<std::string> expanded_;
  std::vector<std::string> open_;  // files that are being read
};

}  // namespace

std::vector<std::string> ExpandFlagFiles(
    const std::vector<std::string>& arguments) {
  FlagFileExpander expander;
  expander.AddAll(arguments);
  return std::move(expander).expanded();
}

}  // namespace strata
