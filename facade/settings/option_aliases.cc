#include "strata/facade/settings/option_aliases.h"

#include <stdexcept>

#include "strata/strategy/registry.h"

namespace strata {
namespace {

const StrategyAlias* FirstSet(const Options& options) {
  for (const StrategyAlias& alias : StrategyAliases()) {
    if (options.*alias.member) return &alias;
  }
  return nullptr;
}

[[noreturn]] void Contradict(const std::string& one, const std::string& other,
                             const std::string& why) {
  throw std::invalid_argument(one + " contradicts " + other + ": " + why);
}

}  // namespace

const std::vector<StrategyAlias>& StrategyAliases() {
  static const auto* const aliases = new std::vector<StrategyAlias>{
      {"use_system_allocator", &Options::use_system_allocator, "direct"},
      {"use_cuda_malloc_async_allocator",
       &Options::use_cuda_malloc_async_allocator, "cuda_malloc_async"},
  };
  return *aliases;
}

std::string ResolveStrategy(const Options& options) {
  const StrategyAlias* alias = FirstSet(options);
  return alias != nullptr ? alias->strategy : options.allocator_strategy;
}

void CheckAliases(const Options& options, bool strategy_was_set) {
  const std::string in_words =
      "allocator_strategy=" + options.allocator_strategy;
  const StrategyAlias* first = FirstSet(options);
  for (const StrategyAlias& alias : StrategyAliases()) {
    if (!(options.*alias.member)) continue;
    const std::string means =
        std::string("it means allocator_strategy=") + alias.strategy;
    if (std::string(alias.strategy) != first->strategy) {
      Contradict(alias.option, first->option, means);
    }
    if (strategy_was_set && options.allocator_strategy != alias.strategy) {
      Contradict(alias.option, in_words, means);
    }
  }
  if (options.use_cuda_managed_memory &&
      (TraitsOf(ResolveStrategy(options)) & kPoolsInDriver) != 0) {
    Contradict("use_cuda_managed_memory",
               first != nullptr ? first->option : in_words,
               "a driver's pool has no managed memory");
  }
}

}  // namespace strata
