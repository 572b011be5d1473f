#include "strata/strategy/registry.h"

#include <array>
#include <stdexcept>
#include <utility>

namespace strata {
namespace {

using Factory = std::shared_ptr<Allocator> (*)(std::shared_ptr<ChunkPool>,
                                               std::shared_ptr<ChainStream>,
                                               const StrategyOptions&);

struct Row {
  const char* name;
  Factory make;
};

constexpr std::array kRows = {
#define STRATA_STRATEGY(name, Class) Row{#name, &Make##Class},
#include "strata/strategy/strategies.def"
#undef STRATA_STRATEGY
};

}  // namespace

std::vector<std::string> StrategyNames() {
  std::vector<std::string> names;
  for (const Row& row : kRows) names.emplace_back(row.name);
  return names;
}

std::shared_ptr<Allocator> MakeStrategy(const std::string& name,
                                        std::shared_ptr<ChunkPool> pool,
                                        std::shared_ptr<ChainStream> stream,
                                        const StrategyOptions& options) {
  std::string known;
  for (const Row& row : kRows) {
    if (name == row.name) {
      return row.make(std::move(pool), std::move(stream), options);
    }
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  throw std::invalid_argument("allocator_strategy: unknown strategy '" + name +
                              "' (known: " + known + ")");
}

}  // namespace strata
