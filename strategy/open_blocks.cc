#include "strata/strategy/open_blocks.h"

#include <algorithm>
#include <cstdint>

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

// The block and its holes, which change only while it is in no list.
std::size_t LeastReachOf(const Block& block) {
  std::size_t reach = block.size;
  if (BlockList::IsHole(block.previous)) reach += block.previous->size;
  if (BlockList::IsHole(block.next)) reach += block.next->size;
  return reach;
}

}  // namespace

bool OpenBlocks::IsTail(const Block& block) {
  return BlockList::IsHole(block.next) && block.next->next == nullptr;
}

void OpenBlocks::Insert(Block* block, bool is_tail) {
  if (is_tail) return tails_.Insert(block);
  inner_.Insert(block);
  least_reach_ = std::min(least_reach_, LeastReachOf(*block));
}

Block* OpenBlocks::Find(std::size_t bytes, std::size_t reach) {
  if (reach != SIZE_MAX && reach <= least_reach_) return nullptr;
  Block* best = nullptr;
  std::size_t best_reach = reach;
  least_reach_ = SIZE_MAX;
  for (Block* block = inner_.first(); block != nullptr;
       block = block->free_next) {
    least_reach_ = std::min(least_reach_, LeastReachOf(*block));
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
