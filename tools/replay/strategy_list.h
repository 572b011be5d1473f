#ifndef STRATA_TOOLS_REPLAY_STRATEGY_LIST_H_
#define STRATA_TOOLS_REPLAY_STRATEGY_LIST_H_

#include <vector>

#include "strata/facade/options.h"

namespace strata::tools {

// The options of each strategy and each peer in the list allocator_strategy.
//
// Model: commas separate the names, and also the switches of a peer. After a
//   peer with switches, "peer:pytorch:KEY=VALUE", an item with "=" is its next
//   switch, unless it begins with "peer:". All items in brackets belong to the
//   peer.
// Errors: as OptionsPerStrategy and IsPeerName.
std::vector<Options> OptionsPerStrategyOrPeer();

}  // namespace strata::tools

#endif  // STRATA_TOOLS_REPLAY_STRATEGY_LIST_H_
