#include "strata/tools/replay/replay_heap.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "strata/tools/peers/registry.h"

namespace strata::tools {

PeerReplayHeap::PeerReplayHeap(const Options& options,
                               std::shared_ptr<Platform> platform)
    : platform_(std::move(platform)),
      peer_(peers::MakePeer(options.allocator_strategy, platform_->device(0))) {
}

bool PeerReplayHeap::Restore(const std::vector<peers::PeerSegment>& segments,
                             std::vector<Block>& blocks) {
  std::vector<Block> restored;
  if (!peer_->Restore(segments, &restored)) return false;
  std::copy(restored.begin(), restored.end(), blocks.begin());
  return true;
}

void PeerReplayHeap::Drop(Block& block) noexcept {
  try {
    Free(block);
  } catch (const std::exception&) {
    block = Block{};
  }
}

}  // namespace strata::tools
