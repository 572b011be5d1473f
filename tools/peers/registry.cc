#include "strata/tools/peers/registry.h"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace strata::peers {
namespace {

constexpr std::string_view kPrefix = "peer:";

struct PeerRow {
  const char* name;
  std::unique_ptr<Peer> (*make)(Device& device);  // null: takes switches
  std::unique_ptr<Peer> (*make_with)(Device& device, std::string_view switches);
  void (*check)(std::string_view switches);
};

constexpr std::array kPeerRows = {
#define STRATA_PEER(name, Make) PeerRow{#name, &Make, nullptr, nullptr},
#define STRATA_PEER_WITH_SWITCHES(name, Make, Check) \
  PeerRow{#name, nullptr, &Make, &Check},
#include "strata/tools/peers/peers.def"
#undef STRATA_PEER
#undef STRATA_PEER_WITH_SWITCHES
};

// A peer named on the command line.
struct PeerRequest {
  const PeerRow* row = nullptr;  // null: a strategy of the facade
  std::string_view switches;     // empty: none
};

[[noreturn]] void RefuseName(std::string_view strategy) {
  std::string known;
  for (const std::string& peer : PeerNames()) {
    known += (known.empty() ? "" : ", ") + peer;
  }
  throw std::invalid_argument("there is no peer '" + std::string(strategy) +
                              "' (known: " + known + ")");
}

PeerRequest ParsePeer(std::string_view strategy) {
  if (!strategy.starts_with(kPrefix)) return {};
  const std::string_view text = strategy.substr(kPrefix.size());
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const auto row =
      std::find_if(kPeerRows.begin(), kPeerRows.end(),
                   [&](const PeerRow& one) { return name == one.name; });
  if (row == kPeerRows.end()) RefuseName(strategy);
  if (colon == std::string_view::npos) return {&*row, {}};
  const std::string_view switches = text.substr(colon + 1);
  if (row->check == nullptr) {
    throw std::invalid_argument("'" + std::string(strategy) +
                                "': peer:" + row->name + " has no switches");
  }
  row->check(switches);
  return {&*row, switches};
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
  return ParsePeer(strategy).row != nullptr;
}

std::unique_ptr<Peer> MakePeer(std::string_view strategy, Device& device) {
  const PeerRequest request = ParsePeer(strategy);
  if (request.row == nullptr) {
    throw std::invalid_argument("'" + std::string(strategy) +
                                "' is not a peer");
  }
  return request.row->make == nullptr
             ? request.row->make_with(device, request.switches)
             : request.row->make(device);
}

}  // namespace strata::peers
