#ifndef STRATA_TOOLS_FILE_KIND_H_
#define STRATA_TOOLS_FILE_KIND_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "strata/tools/input_buffer.h"

namespace strata {

// A file that `strata replay` does not read: its kind, and the file to give
// instead, "an HTML page; …". Empty if it may be one that is read.
//
// `head`: its first bytes, uncompressed; `path`: for kinds that only a name
// tells.
std::string ForeignKind(std::string_view head, std::string_view path);

// The same of a file that `strata check` does not read.
std::string CallForeignKind(std::string_view head, std::string_view path);

// The first bytes of `input`, enough for ForeignKind, which stay in it. Valid
// until the next Fill().
//
// Errors: InputError.
std::string_view HeadOf(InputBuffer& input);

}  // namespace strata

#endif  // STRATA_TOOLS_FILE_KIND_H_
