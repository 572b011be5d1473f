#ifndef STRATA_BASE_QUOTED_H_
#define STRATA_BASE_QUOTED_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "strata/base/require_cxx20.h"

namespace strata {

// Returns the beginning of `text` in quotes, for a message of one line. The
// result has no byte that a terminal might interpret.
inline std::string Quoted(std::string_view text) {
  constexpr std::size_t kMostShown = 40;
  std::string quoted = "'";
  for (const char c : text.substr(0, kMostShown)) {
    quoted += c >= ' ' && c <= '~' ? c : '?';
  }
  quoted += text.size() > kMostShown ? "…'" : "'";
  return quoted;
}

}  // namespace strata

#endif  // STRATA_BASE_QUOTED_H_
