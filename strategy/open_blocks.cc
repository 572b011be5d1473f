#include "strata/strategy/open_blocks.h"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace strata {
namespace {

std::size_t ReachOf(const Block& block) {
  std::size_t reach = block.size;
  if (BlockList::IsHole(block.previous)) reach += block.previous->size;
  if (BlockList::IsHole(block.next)) reach += block.next->size;
  return reach;
}

bool IsLower(const Block& a, const Block* b) {
  return b == nullptr || a.data < b->data;
}

}  // namespace

unsigned OpenBlocks::ListOfReach(std::size_t reach) {
  const auto power =
      static_cast<unsigned>(std::bit_width(reach >> kLeastReachBits)) - 1;
  const std::size_t half = reach >> (power + kLeastReachBits - 1);
  return std::min(2 * power + static_cast<unsigned>(half & 1), kReachLists - 1);
}

unsigned OpenBlocks::ListOf(const Block& block) {
  if (BlockList::IsHole(block.next) && block.next->next == nullptr) {
    return kTails;
  }
  return ListOfReach(ReachOf(block));
}

void OpenBlocks::Insert(Block* block, unsigned list) {
  lists_[list].Insert(block);
  if (list == kTails) return;
  used_ |= std::uint64_t{1} << list;
}

void OpenBlocks::Remove(Block* block, unsigned list) {
  lists_[list].Remove(block);
  if (list == kTails || lists_[list].first() != nullptr) return;
  used_ &= ~(std::uint64_t{1} << list);
}

Block* OpenBlocks::SearchInner(std::size_t bytes, std::size_t reach) const {
  const unsigned first = ListOfReach(bytes + kLeastReachBytes);
  std::uint64_t lists = used_ & (~std::uint64_t{0} << first) &
                        ((std::uint64_t{2} << ListOfReach(reach)) - 1);
  for (; lists != 0; lists &= lists - 1) {
    Block* best = nullptr;
    std::size_t best_reach = reach;
    Block* block =
        lists_[static_cast<std::size_t>(std::countr_zero(lists))].first();
    for (; block != nullptr; block = block->free_next) {
      if (block->size < bytes || block->size >= best_reach) continue;
      const std::size_t block_reach = ReachOf(*block);
      if (block_reach > best_reach) continue;
      if (block_reach == best_reach &&
          (best == nullptr || !IsLower(*block, best))) {
        continue;
      }
      best = block;
      best_reach = block_reach;
    }
    if (best != nullptr) return best;
  }
  return nullptr;
}

Block* OpenBlocks::FindTail(std::size_t bytes) const {
  Block* best = nullptr;
  for (Block* tail = lists_[kTails].first(); tail != nullptr;
       tail = tail->free_next) {
    if (tail->size < bytes) continue;
    if (best == nullptr || tail->size < best->size ||
        (tail->size == best->size && IsLower(*tail, best))) {
      best = tail;
    }
  }
  return best;
}

}  // namespace strata
