#ifndef STRATA_BASE_QUOTED_H_
#define STRATA_BASE_QUOTED_H_

#include <string>
#include <string_view>

#include "strata/base/require_cxx20.h"

namespace strata {

// Returns the beginning of `text` in quotes, for a message of one line. The
// result has no byte that a terminal might interpret.
std::string Quoted(std::string_view text);

}  // namespace strata

#endif  // STRATA_BASE_QUOTED_H_
