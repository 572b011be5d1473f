#ifndef STRATA_PLATFORM_QUOTED_H_
#define STRATA_PLATFORM_QUOTED_H_

#include <string>
#include <string_view>

#include "strata/platform/require_cxx20.h"

namespace strata {

// `text` in quotes for a message of one line: its beginning, and no byte that a
// terminal might act on.
std::string Quoted(std::string_view text);

}  // namespace strata

#endif  // STRATA_PLATFORM_QUOTED_H_
