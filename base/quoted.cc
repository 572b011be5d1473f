#include "strata/base/quoted.h"

namespace strata {

std::string Quoted(std::string_view text) {
  constexpr std::size_t kMostShown = 40;
  std::string quoted = "'";
  for (const char c : text.substr(0, kMostShown)) {
    quoted += c >= ' ' && c <= '~' ? c : '?';
  }
  quoted += text.size() > kMostShown ? "…'" : "'";
  return quoted;
}

}  // namespace strata
