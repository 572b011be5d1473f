#ifndef STRATA_STRATEGY_STRATEGY_OPTIONS_H_
#define STRATA_STRATEGY_STRATEGY_OPTIONS_H_

#include <any>
#include <map>
#include <memory>
#include <typeindex>

#include "strata/allocation/option_values.h"
#include "strata/base/require_cxx20.h"

namespace strata {

class PeerAccess;

// Properties of the place of a strategy. The place sets them.
struct StrategyPlace {
  // The devices that may access mapped memory; null: only the device itself.
  std::shared_ptr<PeerAccess> peers;
  // Whether chunks are managed memory, which has no pages to map.
  bool is_managed = false;
  // Whether chunks stay with the strategy until it ends, as in a graph pool.
  bool holds_chunks = false;
  // Copied from DecoratorOptions.
  bool cross_stream_wait = false;
};

// The options of strategies by type, and the properties of the place. Each
// strategy has a struct of its own, made from the options.def of its folder.
//
// Threads: as a container of the standard library.
class StrategyOptions : public StrategyPlace {
 public:
  // The options of type Own; the defaults if Edit() was not called for Own.
  template <class Own>
  const Own& Get() const {
    static const auto* const defaults = new Own();
    const auto found = by_type_.find(typeid(Own));
    return found != by_type_.end() ? *std::any_cast<Own>(&found->second)
                                   : *defaults;
  }
  template <class Own>
  Own& Edit() {
    std::any& options = by_type_[typeid(Own)];
    if (!options.has_value()) options = Own();
    return *std::any_cast<Own>(&options);
  }

  // The options of a strategy from outside the tree (factory_registry.h).
  OptionValues registered;
  // Options of such strategies that flags set.
  OptionTexts registered_texts;

 private:
  std::map<std::type_index, std::any> by_type_;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_STRATEGY_OPTIONS_H_
