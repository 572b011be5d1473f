#ifndef STRATA_FACADE_OPTION_ALIASES_H_
#define STRATA_FACADE_OPTION_ALIASES_H_

#include <string>
#include <vector>

#include "strata/facade/options.h"

namespace strata {

// A switch of PaddlePaddle's that says what one value of allocator_strategy
// says here.
struct StrategyAlias {
  // By this name, because nvcc writes a member pointer with parentheses that
  // g++ warns of.
  using Member = bool Options::*;

  const char* option;
  Member member;
  const char* strategy;
};

const std::vector<StrategyAlias>& StrategyAliases();

// The strategy in force: the one of an alias that is set, else
// allocator_strategy.
std::string ResolveStrategy(const Options& options);

// Errors: std::invalid_argument naming both options, if aliases contradict each
//   other, allocator_strategy where that `was_set`, or memory that the strategy
//   cannot be had of.
void CheckAliases(const Options& options, bool strategy_was_set);

}  // namespace strata

#endif  // STRATA_FACADE_OPTION_ALIASES_H_
