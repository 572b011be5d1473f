#include "strata/strategy/open_blocks.h"

#include <cstdint>

#include "strata/strategy/block_list.h"

namespace strata {
namespace {

bool IsInRun(const Block* block) {
  return BlockList::IsFree(block) || BlockList::IsHole(block);
}

// SIZE_MAX for a run that ends its range.
std::size_t ReachOf(const Block& block) {
  std::size_t reach = block.size;
  for (const Block* b = block.previous; IsInRun(b); b = b->previous) {
    reach += b->size;
  }
  for (const Block* b = block.next; IsInRun(b); b = b->next) {
    if (b->next == nullptr) return SIZE_MAX;
    reach += b->size;
  }
  return reach;
}

}  // namespace

bool OpenBlocks::IsOpen(const Block& block) {
  return BlockList::IsHole(block.previous) || BlockList::IsHole(block.next);
}

bool OpenBlocks::IsTail(const Block& block) {
  return BlockList::IsHole(block.next) && block.next->next == nullptr;
}

Block* OpenBlocks::Find(std::size_t bytes, std::size_t reach) const {
  Block* best = nullptr;
  std::size_t best_reach = reach;
  for (Block* block = inner_.first(); block != nullptr;
       block = block->free_next) {
    if (block->size < bytes || block->size >= best_reach) continue;
    const std::size_t block_reach = ReachOf(*block);
    if (block_reach < best_reach ||
        (best != nullptr && block_reach == best_reach &&
         block->data < best->data)) {
      best = block;
      best_reach = block_reach;
    }
  }
  if (best != nullptr || reach != SIZE_MAX) return best;
  // Inner blocks whose run ends the range, and tails.
  ForEach([&](Block& block) {
    if (block.size < bytes) return;
    if (best == nullptr || block.size < best->size ||
        (block.size == best->size && block.data < best->data)) {
      best = &block;
    }
  });
  return best;
}

}  // namespace strata
