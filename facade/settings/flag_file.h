#ifndef STRATA_FACADE_SETTINGS_FLAG_FILE_H_
#define STRATA_FACADE_SETTINGS_FLAG_FILE_H_

#include <string>
#include <vector>

#include "strata/base/require_cxx20.h"

namespace strata {

// Returns the arguments of a command line, with each --flagfile=FILE,… replaced
// by the flags in those files.
//
// Model: a flag file has one flag per line, --name or --name=value. Empty lines
//   and lines that begin with # are ignored. A flag may be another --flagfile.
//   Names are not checked here: the parser of the result refuses an unknown
//   flag of a file as it does one of the command line. Arguments after "--" are
//   not read.
// Errors: std::invalid_argument naming the file, and the line, if the file
//   cannot be read, contains a line that is no flag, or includes itself.
std::vector<std::string> ExpandFlagFiles(
    const std::vector<std::string>& arguments);

}  // namespace strata

#endif  // STRATA_FACADE_SETTINGS_FLAG_FILE_H_
