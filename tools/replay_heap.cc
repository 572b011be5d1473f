#include "strata/tools/replay_heap.h"

#include <exception>
#include <utility>

#include "strata/tools/peers/registry.h"

namespace strata {

PeerReplayHeap::PeerReplayHeap(const Options& options,
                               std::shared_ptr<Platform> platform)
    : platform_(std::move(platform)),
      peer_(MakePeer(options.allocator_strategy, platform_->device(0))) {}

void PeerReplayHeap::Drop(Block& block) noexcept {
  try {
    Free(block);
  } catch (const std::exception&) {
    block = Block{};
  }
}

}  // namespace strata
