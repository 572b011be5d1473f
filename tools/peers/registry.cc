#include "strata/tools/peers/registry.h"

#include <array>
#include <stdexcept>

namespace strata {
namespace {

constexpr std::string_view kPrefix = "peer:";

struct PeerRow {
  const char* name;
  std::unique_ptr<Peer> (*make)(Device& device);
};

constexpr std::array kPeerRows = {
#define STRATA_PEER(name, Make) PeerRow{#name, &Make},
#include "strata/tools/peers/peers.def"
#undef STRATA_PEER
};

// Null for a strategy of the facade.
const PeerRow* FindRow(std::string_view strategy) {
  if (!strategy.starts_with(kPrefix)) return nullptr;
  const std::string_view name = strategy.substr(kPrefix.size());
  for (const PeerRow& row : kPeerRows) {
    if (name == row.name) return &row;
  }
  std::string known;
  for (const std::string& peer : PeerNames()) {
    known += (known.empty() ? "" : ", ") + peer;
  }
  throw std::invalid_argument("there is no peer '" + std::string(strategy) +
                              "' (known: " + known + ")");
}

}  // namespace

std::vector<std::string> PeerNames() {
  std::vector<std::string> names;
  for (const PeerRow& row : kPeerRows) {
    names.push_back(std::string(kPrefix).append(row.name));
  }
  return names;
}

bool IsPeerName(std::string_view strategy) {
  return FindRow(strategy) != nullptr;
}

std::unique_ptr<Peer> MakePeer(std::string_view strategy, Device& device) {
  const PeerRow* row = FindRow(strategy);
  if (row == nullptr) {
    throw std::invalid_argument("'" + std::string(strategy) +
                                "' is not a peer");
  }
  return row->make(device);
}

}  // namespace strata
