#ifndef STRATA_FACADE_SETTINGS_OPTION_ALIASES_H_
#define STRATA_FACADE_SETTINGS_OPTION_ALIASES_H_

#include <string>
#include <vector>

#include "strata/facade/options.h"

namespace strata {

// A switch of PaddlePaddle that stands for one value of allocator_strategy.
struct StrategyAlias {
  // A named type, because nvcc writes a member pointer with parentheses that
  // g++ warns about.
  using Member = bool Options::*;

  const char* option;
  Member member;
  const char* strategy;
};

const std::vector<StrategyAlias>& StrategyAliases();

// The strategy in force: the strategy of the alias that is set, else
// allocator_strategy.
std::string ResolveStrategy(const Options& options);

// Errors: std::invalid_argument naming both options, if aliases contradict each
//   other, allocator_strategy (if `strategy_was_set`), or a kind of memory that
//   the strategy does not support.
void CheckAliases(const Options& options, bool strategy_was_set);

}  // namespace strata

#endif  // STRATA_FACADE_SETTINGS_OPTION_ALIASES_H_
