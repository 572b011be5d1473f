#include "strata/strategy/factory_registry.h"

#include <algorithm>
#include <exception>
#include <stdexcept>

#include "strata/base/log.h"

namespace strata {
namespace {

std::string Described(const StrategyFactory& factory) {
  return "strategy '" + factory.name + "' of priority " +
         std::to_string(factory.priority) + " (" + factory.file + ":" +
         std::to_string(factory.line) + ")";
}

}  // namespace

void StrategyFactories::Register(const StrategyFactory& factory) {
  const auto refuse = [&](const std::string& why) {
    throw std::invalid_argument(Described(factory) + " " + why);
  };
  if (factory.name.empty()) refuse("has no name");
  if (factory.priority < 0) refuse("has a negative priority");
  if (factory.make == nullptr) refuse("has no function that makes it");
  try {
    CheckOptions(factory.name, factory.options);
  } catch (const std::invalid_argument& error) {
    refuse(std::string("has a wrong option: ") + error.what());
  }
  const std::lock_guard<std::mutex> guard(mutex_);
  if (was_used_) {
    throw std::logic_error(Described(factory) +
                           " is registered after a strategy was first used");
  }
  for (const StrategyFactory& other : factories_) {
    if (other.name == factory.name && other.priority == factory.priority) {
      refuse("is registered already: " + Described(other));
    }
  }
  factories_.push_back(factory);
}

void StrategyFactories::Unregister(const char* file, int line) noexcept {
  const std::lock_guard<std::mutex> guard(mutex_);
  std::erase_if(factories_, [&](const StrategyFactory& factory) {
    return factory.line == line && std::string_view(factory.file) == file;
  });
}

std::vector<std::string> StrategyFactories::Names() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  std::vector<std::string> names;
  for (const StrategyFactory& factory : factories_) {
    if (std::find(names.begin(), names.end(), factory.name) == names.end()) {
      names.push_back(factory.name);
    }
  }
  return names;
}

std::optional<StrategyFactory> StrategyFactories::Peek(
    std::string_view name) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  const StrategyFactory* best = nullptr;
  for (const StrategyFactory& factory : factories_) {
    if (factory.name != name) continue;
    if (best == nullptr || factory.priority > best->priority) best = &factory;
  }
  return best != nullptr ? std::optional<StrategyFactory>(*best) : std::nullopt;
}

std::optional<StrategyFactory> StrategyFactories::Find(std::string_view name) {
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    was_used_ = true;
  }
  return Peek(name);
}

StrategyRegistrar::StrategyRegistrar(const StrategyFactory& factory) noexcept
    : line_(factory.line) {
  try {
    StrategyFactories::Instance().Register(factory);
    file_ = factory.file;
  } catch (const std::invalid_argument& error) {
    STRATA_FATAL << error.what();
  } catch (const std::logic_error& error) {
    STRATA_LOG(Error) << error.what();
  } catch (const std::exception& error) {
    STRATA_FATAL << error.what();
  }
}

StrategyRegistrar::~StrategyRegistrar() {
  if (file_ == nullptr) return;
  StrategyFactories::Instance().Unregister(file_, line_);
}

}  // namespace strata
