#include "strata/tools/replay/strategy_list.h"

#include <string>
#include <string_view>
#include <utility>

#include "strata/facade/flags.h"
#include "strata/tools/peers/registry.h"

namespace strata::tools {
namespace {

constexpr std::string_view kPeerPrefix = "peer:";

// Whether `item` of the list is a switch of the name `previous`, or a part of
// one. `previous` includes the items that belong to it.
bool Continues(const std::string& previous, const std::string& item) {
  if (!previous.starts_with(kPeerPrefix)) return false;
  if (previous.find(':', kPeerPrefix.size()) == std::string_view::npos) {
    return false;
  }
  const std::size_t open = previous.rfind('[');
  if (open != std::string_view::npos &&
      previous.find(']', open) == std::string_view::npos) {
    return true;
  }
  return item.find('=') != std::string_view::npos &&
         !item.starts_with(kPeerPrefix);
}

}  // namespace

std::vector<Options> OptionsPerStrategyOrPeer() {
  std::string name;  // including the items so far that belong to it
  const auto is_peer = [&](const std::string& item) {
    if (Continues(name, item)) {
      name += "," + item;
      return true;
    }
    name = item;
    return item.starts_with(kPeerPrefix);
  };
  std::vector<Options> all;
  for (Options& options : OptionsPerStrategy(is_peer)) {
    const std::string& item = options.allocator_strategy;
    if (!all.empty() && Continues(all.back().allocator_strategy, item)) {
      all.back().allocator_strategy += "," + item;
    } else {
      all.push_back(std::move(options));
    }
  }
  // Throws for wrong names and switches.
  for (const Options& options : all) {
    peers::IsPeerName(options.allocator_strategy);
  }
  return all;
}

}  // namespace strata::tools
