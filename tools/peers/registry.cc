#include "strata/tools/peers/registry.h"

#include <array>
#include <stdexcept>

namespace strata {
namespace {

constexpr std::string_view kPrefix = "peer:";

struct Row {
  const char* name;
  std::unique_ptr<Peer> (*make)(Device& device);
};

constexpr std::array kRows = {
#define STRATA_PEER(name, Make) Row{#name, &Make},
#include "strata/tools/peers/peers.def"
#undef STRATA_PEER
};

// Null for a strategy of the facade.
const Row* FindRow(std::string_view strategy) {
  if (!strategy.starts_with(kPrefix)) return nullptr;
  const std::string_view name = strategy.substr(kPrefix.size());
  for (const Row& row : kRows) {
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
  for (const Row& row : kRows) {
    names.push_back(std::string(kPrefix).append(row.name));
  }
  return names;
}

bool IsPeerName(std::string_view strategy) {
  return FindRow(strategy) != nullptr;
}

std::unique_ptr<Peer> MakePeer(std::string_view strategy, Device& device) {
  const Row* row = FindRow(strategy);
  if (row == nullptr) {
    throw std::invalid_argument("'" + std::string(strategy) +
                                "' is not a peer");
  }
  return row->make(device);
}

}  // namespace strata
