#ifndef STRATA_TOOLS_FLAG_TABLE_H_
#define STRATA_TOOLS_FLAG_TABLE_H_

#include <string>
#include <vector>

namespace strata {

// A flag of PaddlePaddle that touches memory (paddle_flags.def).
struct PaddleFlag {
  const char* name;
  const char* default_value;
  const char* why_not;  // why there is no such option here; "": there is
};

std::vector<PaddleFlag> PaddleFlags();

// docs/flags.md: every option, the options that have no effect any more, and
// the flags of PaddlePaddle that have no counterpart, with the reasons.
std::string FlagsMarkdown();

}  // namespace strata

#endif  // STRATA_TOOLS_FLAG_TABLE_H_
