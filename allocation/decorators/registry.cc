#include "strata/allocation/decorators/registry.h"

#include <array>
#include <stdexcept>
#include <utility>

#include "strata/allocation/decorators/registered/decorator_factories.h"
#include "strata/base/fork_lock.h"

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

std::shared_ptr<Allocator> AddRegistered(
    std::shared_ptr<Allocator> inner, const DecoratorPosition& position,
    const std::vector<SelectedDecorator>& registered,
    const ChainContext& context) {
  for (auto one = registered.rbegin(); one != registered.rend(); ++one) {
    const DecoratorFactory& factory = one->factory;
    if (!(factory.position == position)) continue;
    inner = factory.make(std::move(inner), one->settings, context);
    if (inner == nullptr) {
      throw std::invalid_argument("strata_decorators: " + factory.name +
                                  ": its function made no layer");
    }
  }
  return inner;
}

std::shared_ptr<Allocator> Wrap(std::shared_ptr<Allocator> inner,
                                bool below_strategy,
                                const DecoratorOptions& options,
                                const ChainContext& context) {
  const auto registered = DecoratorFactories::Instance().Select(
      options.registered, options.registered_texts);
  const auto add = [&](const DecoratorPosition& position) {
    inner = AddRegistered(std::move(inner), position, registered, context);
  };
  if (!below_strategy) add(Above("strategy"));
  for (auto row = kRows.rbegin(); row != kRows.rend(); ++row) {
    if (row->below_strategy != below_strategy) continue;
    add(Below(row->name));
    inner = row->make(std::move(inner), options, context);
    add(Above(row->name));
  }
  return inner;
}

}  // namespace

DecoratorFactories& DecoratorFactories::Instance() {
  // Never destroyed. Created on first use, which may be in a registrar before
  // main.
  static DecoratorFactories* const instance = [] {
    std::vector<std::string> layers;
    for (const Row& row : kRows) layers.emplace_back(row.name);
    auto* factories = new DecoratorFactories(std::move(layers));
    static const ForkLock fork_lock(factories->mutex_);
    return factories;
  }();
  return *instance;
}

std::vector<std::string> DecoratorNames() {
  const auto registered = DecoratorFactories::Instance().All();
  std::vector<std::string> names;
  const auto add = [&](const DecoratorPosition& position) {
    for (const DecoratorFactory& factory : registered) {
      if (factory.position == position) names.push_back(factory.name);
    }
  };
  bool above_strategy = true;
  for (const Row& row : kRows) {
    if (row.below_strategy && std::exchange(above_strategy, false)) {
      add(Above("strategy"));
    }
    add(Above(row.name));
    names.emplace_back(row.name);
    add(Below(row.name));
  }
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
