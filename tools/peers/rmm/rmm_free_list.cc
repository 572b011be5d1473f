#include "strata/tools/peers/rmm/rmm_free_list.h"

#include <algorithm>
#include <iterator>

namespace strata::peers {

void RmmFreeList::Insert(const RmmBlock& block) {
  const auto next = std::find_if(
      blocks_.begin(), blocks_.end(),
      [&](const RmmBlock& other) { return block.address < other.address; });
  const bool joins_next = next != blocks_.end() && block.IsBefore(*next);
  const auto previous =
      next == blocks_.begin() ? blocks_.end() : std::prev(next);
  if (previous != blocks_.end() && previous->IsBefore(block)) {
    previous->bytes += block.bytes;
    if (joins_next) {
      previous->bytes += next->bytes;
      blocks_.erase(next);
    }
  } else if (joins_next) {
    *next = {block.address, block.bytes + next->bytes, block.is_head};
  } else {
    blocks_.insert(next, block);
  }
}

void RmmFreeList::Insert(const RmmFreeList& other) {
  for (const RmmBlock& block : other.blocks_) Insert(block);
}

RmmBlock RmmFreeList::TakeBestFit(std::size_t bytes) {
  // Blocks that are too small come last.
  const auto best = std::min_element(
      blocks_.begin(), blocks_.end(),
      [bytes](const RmmBlock& a, const RmmBlock& b) {
        return a.bytes >= bytes && (a.bytes < b.bytes || b.bytes < bytes);
      });
  if (best == blocks_.end() || best->bytes < bytes) return {};
  const RmmBlock block = *best;
  blocks_.erase(best);
  return block;
}

}  // namespace strata::peers
