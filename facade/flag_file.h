#ifndef STRATA_FACADE_FLAG_FILE_H_
#define STRATA_FACADE_FLAG_FILE_H_

#include <string>
#include <vector>

#include "strata/platform/require_cxx20.h"

namespace strata {

// The arguments of a command line, with what its flag files hold in the place
// of each --flagfile=FILE,….
//
// Model: a flag file has one flag per line, --name or --name=value; empty lines
//   and those that begin with # say nothing. A flag may be another --flagfile.
//   Whether there is a flag of that name is for who parses the result, so that
//   one that is misspelt is refused in a file as on a command line. Nothing
//   after "--" is looked at.
// Errors: std::invalid_argument naming the file, and the line, if it cannot be
//   read, has a line that is no flag, or takes part in its own expansion.
std::vector<std::string> ExpandFlagFiles(
    const std::vector<std::string>& arguments);

}  // namespace strata

#endif  // STRATA_FACADE_FLAG_FILE_H_
