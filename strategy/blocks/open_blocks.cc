#include "strata/strategy/blocks/open_blocks.h"

#include <cstdint>
#include <tuple>

namespace strata {
namespace {

std::size_t ReachOf(const Block& block) {
  std::size_t reach = block.size;
  if (BlockList::IsHole(block.next)) {
    if (block.next->next == nullptr) return SIZE_MAX;
    reach += block.next->size;
  }
  if (BlockList::IsHole(block.previous)) reach += block.previous->size;
  return reach;
}

}  // namespace

Block* OpenBlocks::Find(std::size_t bytes) const {
  Block* best = nullptr;
  ForEach([&](Block& block) {
    if (block.size < bytes) return;
    const auto rank = [](const Block& of) {
      return std::tuple(ReachOf(of), of.size, of.data);
    };
    if (best == nullptr || rank(block) < rank(*best)) best = &block;
  });
  return best;
}

}  // namespace strata
