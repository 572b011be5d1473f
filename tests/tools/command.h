#ifndef STRATA_TESTS_TOOLS_COMMAND_H_
#define STRATA_TESTS_TOOLS_COMMAND_H_

#include <sys/wait.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "strata/tests/tools/temp_file.h"

namespace strata::tools {

struct CommandResult {
  int code = -1;  // exit code; -1: the program did not exit
  std::string out;
  std::string err;
};

inline std::string ShellQuoted(const std::string& word) {
  std::ostringstream quoted;
  quoted << '\'';
  for (const char c : word) {
    if (c == '\'') {
      quoted << "'\\''";
    } else {
      quoted << c;
    }
  }
  quoted << '\'';
  return quoted.str();
}

// Runs the `strata` program without input, and writes its output to the file
// `out`. `environment` contains assignments, "NAME=value".
inline CommandResult RunStrataTo(
    const std::string& out, const std::vector<std::string>& arguments,
    const std::vector<std::string>& environment = {}) {
  const TempFile err(".err");
  std::ostringstream command;
  command << "env";
  for (const std::string& one : environment) command << ' ' << ShellQuoted(one);
  command << ' ' << ShellQuoted(STRATA_BINARY);
  for (const std::string& one : arguments) command << ' ' << ShellQuoted(one);
  command << " </dev/null >" << ShellQuoted(out) << " 2>"
          << ShellQuoted(err.path());
  const int status = std::system(command.str().c_str());
  CommandResult result;
  if (WIFEXITED(status)) result.code = WEXITSTATUS(status);
  result.err = err.Read();
  return result;
}

// Likewise, and reads the output.
inline CommandResult RunStrata(
    const std::vector<std::string>& arguments,
    const std::vector<std::string>& environment = {}) {
  const TempFile out(".out");
  CommandResult result = RunStrataTo(out.path(), arguments, environment);
  result.out = out.Read();
  return result;
}

}  // namespace strata::tools

#endif  // STRATA_TESTS_TOOLS_COMMAND_H_
