#ifndef STRATA_TOOLS_COMMANDS_FLAG_TABLE_H_
#define STRATA_TOOLS_COMMANDS_FLAG_TABLE_H_

#include <string>
#include <vector>

namespace strata::tools {

// A flag of PaddlePaddle that affects memory (paddle_flags.def).
struct PaddleFlag {
  const char* name;
  const char* default_value;
  const char* why_not;  // reason why there is no such option; "": there is one
};

std::vector<PaddleFlag> PaddleFlags();

// The content of docs/flags.md: every option, the options without effect, and
// the flags of PaddlePaddle without a counterpart, with the reasons.
std::string FlagsMarkdown();

}  // namespace strata::tools

#endif  // STRATA_TOOLS_COMMANDS_FLAG_TABLE_H_
