#ifndef STRATA_TOOLS_PEERS_REGISTRY_H_
#define STRATA_TOOLS_PEERS_REGISTRY_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "strata/platform/device.h"
#include "strata/tools/peers/peer.h"

namespace strata::peers {

// The names of the peers of peers.def on the command line: "peer:pytorch", ….
std::vector<std::string> PeerNames();

// Whether `strategy` names a peer instead of a strategy of the facade. A name
// may end with switches, "peer:pytorch:max_split_size_mb=64".
//
// Errors: std::invalid_argument naming the known peers if it begins with
//   "peer:" and is none of them; or naming the wrong switch.
bool IsPeerName(std::string_view strategy);

// Creates the peer that `strategy` names, with the default settings of its
// original, except for its switches (docs/peers.md).
//
// Errors: std::invalid_argument unless IsPeerName; std::runtime_error if the
//   device lacks a feature that the peer needs.
std::unique_ptr<Peer> MakePeer(std::string_view strategy, Device& device);

// The factories, one per line of peers.def.
#define STRATA_PEER(name, Make) std::unique_ptr<Peer> Make(Device& device);
#define STRATA_PEER_WITH_SWITCHES(name, Make, Check)                     \
  std::unique_ptr<Peer> Make(Device& device, std::string_view switches); \
  void Check(std::string_view switches);
#include "strata/tools/peers/peers.def"
#undef STRATA_PEER
#undef STRATA_PEER_WITH_SWITCHES

}  // namespace strata::peers

#endif  // STRATA_TOOLS_PEERS_REGISTRY_H_
