#ifndef STRATA_FACADE_SETTINGS_STRATEGY_FLAGS_H_
#define STRATA_FACADE_SETTINGS_STRATEGY_FLAGS_H_

#include "strata/allocation/option_values.h"
#include "strata/strategy/blocks/front_cache_policy.h"
#include "strata/strategy/strategy_options.h"

#define STRATA_STRATEGY_HEADERS
#include "strata/strategy/strategies.def"

namespace strata {

// The options at a place of the host: those that are about devices have their
// defaults. Overload OnHost beside the strategy's options if some of them are
// about devices.
template <class Own>
Own OnHost(const Own& options) {
  return options;
}

// The fields of all strategies' options in one object.
template <class... Own>
struct JoinedOptions : Own... {
  // Options of registered strategies that flags set.
  OptionTexts registered_texts;

  // The options as a strategy receives them, on a device or on the host.
  StrategyOptions ByType(bool is_on_host = false) const {
    StrategyOptions options;
    ((options.Edit<Own>() = is_on_host ? OnHost(static_cast<const Own&>(*this))
                                       : static_cast<const Own&>(*this)),
     ...);
    options.registered_texts = registered_texts;
    return options;
  }
};

using StrategyFlags = JoinedOptions<FrontCacheOptions
#define STRATA_STRATEGY_OPTIONS(Struct) , Struct
#include "strata/strategy/strategies.def"
                                    >;

}  // namespace strata

#endif  // STRATA_FACADE_SETTINGS_STRATEGY_FLAGS_H_
