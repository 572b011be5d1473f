#include "strata/allocation/decorators/registry.h"

#include <array>
#include <utility>

namespace strata {
namespace {

using Factory = std::shared_ptr<Allocator> (*)(std::shared_ptr<Allocator>,
                                               const DecoratorOptions&,
                                               const ChainContext&);

struct Row {
  const char* name;
  Factory make;
  bool below_strategy;
};

#define STRATA_DECORATOR(name, Class) Row{#name, &Make##Class, false},
#define STRATA_SYSTEM_DECORATOR(name, Class) Row{#name, &Make##Class, true},
constexpr std::array kRows = {
#include "strata/allocation/decorators/decorators.def"
};
#undef STRATA_SYSTEM_DECORATOR
#undef STRATA_DECORATOR

std::shared_ptr<Allocator> Wrap(std::shared_ptr<Allocator> inner,
                                bool below_strategy,
                                const DecoratorOptions& options,
                                const ChainContext& context) {
  for (auto row = kRows.rbegin(); row != kRows.rend(); ++row) {
    if (row->below_strategy != below_strategy) continue;
    inner = row->make(std::move(inner), options, context);
  }
  return inner;
}

}  // namespace

std::vector<std::string> DecoratorNames() {
  std::vector<std::string> names;
  for (const Row& row : kRows) names.emplace_back(row.name);
  return names;
}

std::shared_ptr<Allocator> Decorate(std::shared_ptr<Allocator> strategy,
                                    const DecoratorOptions& options,
                                    const ChainContext& context) {
  return Wrap(std::move(strategy), /*below_strategy=*/false, options, context);
}

std::shared_ptr<Allocator> DecorateSystem(std::shared_ptr<Allocator> system,
                                          const DecoratorOptions& options,
                                          const ChainContext& context) {
  return Wrap(std::move(system), /*below_strategy=*/true, options, context);
}

}  // namespace strata
