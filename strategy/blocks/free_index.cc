#include "strata/strategy/blocks/free_index.h"

#include <algorithm>

namespace strata {

std::size_t FreeIndex::LargestBytes() const {
  if (empty()) return 0;
  std::size_t largest = 0;
  const Block* block = heads_[classes_.Last()];
  for (int i = 0; i < kProbes && block != nullptr; ++i) {
    largest = std::max(largest, block->size);
    block = block->free_next;
  }
  return largest;
}

FreeIndex::Totals FreeIndex::Count() const {
  Totals totals;
  for (const Block* block : heads_) {
    for (; block != nullptr; block = block->free_next) {
      ++totals.blocks;
      totals.bytes += block->size;
    }
  }
  return totals;
}

bool FreeIndex::IsConsistent() const {
  for (unsigned i = 0; i < SizeClasses::kCount; ++i) {
    if (classes_.IsMarked(i) != (heads_[i] != nullptr)) return false;
    const Block* previous = nullptr;
    for (const Block* block = heads_[i]; block != nullptr;
         block = block->free_next) {
      if (previous != nullptr && block->free_previous != previous) return false;
      if (SizeClasses::Of(block->size) != i) return false;
      if (!block->is_free) return false;
      previous = block;
    }
  }
  return classes_.IsConsistent();
}

}  // namespace strata
