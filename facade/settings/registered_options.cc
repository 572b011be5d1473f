#include "strata/facade/settings/registered_options.h"

#include <mutex>
#include <set>
#include <stdexcept>

#include "strata/allocation/decorators/registered/decorator_factories.h"
#include "strata/strategy/registry.h"

namespace strata {
namespace {

struct FlagRow {
  std::string flag;
  RegisteredOption option;
  std::string owner;  // for messages
  bool is_of_strategy;
};

std::vector<FlagRow> FlagRows() {
  std::vector<FlagRow> rows;
  for (const std::string& name : StrategyNames()) {
    const auto factory = StrategyFactories::Instance().Peek(name);
    if (!factory) continue;
    for (const RegisteredOption& option : factory->options) {
      rows.push_back(
          {FlagOf(name, option), option, "strategy '" + name + "'", true});
    }
  }
  for (const DecoratorFactory& factory : DecoratorFactories::Instance().All()) {
    for (const RegisteredOption& option : factory.options) {
      rows.push_back({FlagOf(factory.name, option), option,
                      "decorator '" + factory.name + "'", false});
    }
  }
  return rows;
}

bool IsOptionOfTree(std::string_view name) {
#define STRATA_OPTION(Type, option, member, default_value, help) \
  if (name == #option) return true;
#include "strata/facade/options.def"
#undef STRATA_OPTION
#define STRATA_REMOVED_OPTION(Type, option, default_value, why) \
  if (name == #option) return true;
#include "strata/facade/settings/removed_options.def"
#undef STRATA_REMOVED_OPTION
  return false;
}

// The characters of `text`, for as long as the process lives.
const char* Forever(const std::string& text) {
  static std::mutex mutex;
  static auto* const texts = new std::set<std::string>;
  const std::lock_guard<std::mutex> guard(mutex);
  return texts->insert(text).first->c_str();
}

}  // namespace

std::vector<OptionInfo> RegisteredOptionTable() {
  std::vector<OptionInfo> table;
  std::set<std::string> flags;
  for (const FlagRow& row : FlagRows()) {
    const bool is_new = flags.insert(row.flag).second;
    if (!is_new || IsOptionOfTree(row.flag)) {
      throw std::invalid_argument(row.owner + ": its option '" +
                                  row.option.name + "' cannot be the flag --" +
                                  row.flag + ": there is such a flag");
    }
    table.push_back({Forever(row.flag), Forever(row.option.type),
                     row.option.default_value, Forever(row.option.help),
                     /*is_registered=*/true});
  }
  return table;
}

bool SetRegisteredOption(Options& options, std::string_view name,
                         std::string_view value) {
  for (const FlagRow& row : FlagRows()) {
    if (row.flag != name) continue;
    CheckOptionText(name, row.option.type, value);
    OptionTexts& texts = row.is_of_strategy
                             ? options.strategy.registered_texts
                             : options.decorators.registered_texts;
    texts[row.flag] = value;
    return true;
  }
  return false;
}

std::string RegisteredText(const Options& options,
                           const OptionInfo& registered) {
  for (const OptionTexts* texts : {&options.strategy.registered_texts,
                                   &options.decorators.registered_texts}) {
    const auto found = texts->find(registered.name);
    if (found != texts->end()) return found->second;
  }
  return registered.default_value;
}

}  // namespace strata
