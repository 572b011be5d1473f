#include "strata/allocation/decorators/registered/decorator_factories.h"

#include <algorithm>
#include <exception>
#include <set>
#include <stdexcept>

#include "strata/base/log.h"

namespace strata {
namespace {

// The name that a position uses for the strategy.
constexpr std::string_view kStrategy = "strategy";

std::string Described(const DecoratorFactory& factory) {
  return "decorator '" + factory.name + "' (" + factory.file + ":" +
         std::to_string(factory.line) + ")";
}

std::string Joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

bool Contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The names in `text`, each with the text of its options.
std::vector<std::pair<std::string, std::string>> SplitSelection(
    std::string_view text) {
  std::vector<std::pair<std::string, std::string>> selection;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(','));
    text.remove_prefix(std::min(one.size() + 1, text.size()));
    const std::size_t colon = std::min(one.find(':'), one.size());
    const std::size_t rest = std::min(colon + 1, one.size());
    selection.emplace_back(one.substr(0, colon), one.substr(rest));
  }
  return selection;
}

SelectedDecorator Selected(const DecoratorFactory& factory,
                           const std::string& options,
                           const OptionTexts& texts) {
  try {
    return {factory,
            DecoratorSettings(
                WithFlagTexts(factory.options, factory.name, texts), options)};
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument("strata_decorators: " + factory.name + ": " +
                                error.what());
  }
}

}  // namespace

std::string ToString(const DecoratorPosition& position) {
  return (position.is_above ? "above " : "below ") + position.layer;
}

void DecoratorFactories::Register(const DecoratorFactory& factory) {
  const auto refuse = [&](const std::string& why) {
    throw std::invalid_argument(Described(factory) + " " + why);
  };
  const std::string& layer = factory.position.layer;
  if (factory.name.empty()) refuse("has no name");
  if (factory.make == nullptr) refuse("has no function that makes it");
  if (Contains(layers_, factory.name)) refuse("has the name of a layer");
  if (layer == kStrategy && !factory.position.is_above) {
    refuse("cannot be below the strategy");
  }
  if (layer != kStrategy && !Contains(layers_, layer)) {
    refuse("is " + ToString(factory.position) +
           ", but there is no such layer (known: " + Joined(layers_) +
           ", strategy)");
  }
  try {
    CheckOptions(factory.name, factory.options);
  } catch (const std::invalid_argument& error) {
    refuse(std::string("has a wrong option: ") + error.what());
  }
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto at = std::lower_bound(
      factories_.begin(), factories_.end(), factory,
      [](const auto& one, const auto& two) { return one.name < two.name; });
  if (at != factories_.end() && at->name == factory.name) {
    refuse("is registered already: " + Described(*at));
  }
  factories_.insert(at, factory);
}

void DecoratorFactories::Unregister(std::string_view name) noexcept {
  const std::lock_guard<std::mutex> guard(mutex_);
  std::erase_if(factories_, [&](const DecoratorFactory& factory) {
    return factory.name == name;
  });
}

std::vector<DecoratorFactory> DecoratorFactories::All() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return factories_;
}

bool DecoratorFactories::Has(std::string_view name) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return std::any_of(
      factories_.begin(), factories_.end(),
      [&](const DecoratorFactory& factory) { return factory.name == name; });
}

std::vector<SelectedDecorator> DecoratorFactories::Select(
    std::string_view text, const OptionTexts& texts) const {
  std::vector<SelectedDecorator> result;
  if (text.empty()) return result;
  const std::vector<DecoratorFactory> all = All();
  std::vector<std::string> known;
  for (const DecoratorFactory& factory : all) known.push_back(factory.name);
  std::set<std::string> names;
  const auto selection = SplitSelection(text);
  for (const auto& [name, options] : selection) {
    if (!Contains(known, name)) {
      throw std::invalid_argument("strata_decorators: unknown decorator '" +
                                  name + "' (known: " + Joined(known) + ")");
    }
    if (!names.insert(name).second) {
      throw std::invalid_argument("strata_decorators: '" + name +
                                  "' is selected twice");
    }
  }
  for (const DecoratorFactory& factory : all) {
    for (const auto& [name, options] : selection) {
      if (name == factory.name) {
        result.push_back(Selected(factory, options, texts));
      }
    }
  }
  return result;
}

DecoratorRegistrar::DecoratorRegistrar(const DecoratorFactory& factory) noexcept
    : name_(factory.name) {
  try {
    DecoratorFactories::Instance().Register(factory);
  } catch (const std::exception& error) {
    STRATA_FATAL << error.what();
  }
}

DecoratorRegistrar::~DecoratorRegistrar() {
  DecoratorFactories::Instance().Unregister(name_);
}

}  // namespace strata
