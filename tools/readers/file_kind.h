#ifndef STRATA_TOOLS_READERS_FILE_KIND_H_
#define STRATA_TOOLS_READERS_FILE_KIND_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "strata/tools/readers/input_buffer.h"

namespace strata::tools {

// Describes a file that `strata replay` does not read: its kind, and the file
// to use instead, "an HTML page; …". Empty if the file may be readable.
//
// `head`: its first bytes, uncompressed; `path`: for kinds that are recognised
// by the name only.
std::string ForeignKind(std::string_view head, std::string_view path);

// ForeignKind for `strata check`.
std::string CallForeignKind(std::string_view head, std::string_view path);

// The first bytes of `input`, enough for ForeignKind. Does not consume them.
// Valid until the next Fill().
//
// Errors: InputError.
std::string_view HeadOf(InputBuffer& input);

}  // namespace strata::tools

#endif  // STRATA_TOOLS_READERS_FILE_KIND_H_
