#ifndef STRATA_FACADE_GFLAGS_COMMAND_LINE_H_
#define STRATA_FACADE_GFLAGS_COMMAND_LINE_H_

#include <string>
#include <vector>

#include "strata/base/require_cxx20.h"

namespace strata {

struct CommandLine {
  std::vector<std::string> others;  // arguments that are no flags
  std::vector<std::string> errors;  // one sentence each
  // Names of the flags of gflags that ask for a report: help, version, ….
  std::vector<std::string> reports;
};

// Sets the flags of gflags that `arguments` name.
//
// Model: the syntax of gflags: -name, --name, --noname, --name=value, --name
//   value; dashes in a name are underscores. --undefok names unknown flags that
//   are no errors. In contrast to gflags::ParseCommandLineFlags this function
//   changes no other state of gflags: the name of the program, the exit
//   function, the flags that ask for reports.
CommandLine SetFlags(const std::vector<std::string>& arguments);

// Whether RegisterFlags found the flag defined by the program.
bool IsFlagOfProgram(const std::string& name);

}  // namespace strata

#endif  // STRATA_FACADE_GFLAGS_COMMAND_LINE_H_
