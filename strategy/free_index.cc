#include "strata/strategy/free_index.h"

#include <algorithm>

namespace strata {
Block* FreeIndex::FindExact(std::size_t bytes) const {
  const unsigned own_class = ClassOf(bytes);
  if (own_class >= kClasses || heads_[own_class] == nullptr) return nullptr;
  Block* best = BestOf(own_class, bytes);
  return best != nullptr && best->size == bytes ? best : nullptr;
}

std::size_t FreeIndex::LargestBytes() const {
  if (empty()) return 0;
  const auto highest = [](std::uint64_t word) {
    return 63U - static_cast<unsigned>(std::countl_zero(word));
  };
  unsigned group = kGroups - 1;
  while (groups_[group] == 0) --group;
  const unsigned word = group * 64 + highest(groups_[group]);
  const unsigned size_class = word * 64 + highest(words_[word]);
  std::size_t largest = 0;
  const Block* block = heads_[size_class];
  for (int i = 0; i < kProbes && block != nullptr; ++i) {
    largest = std::max(largest, block->size);
    block = block->free_next;
  }
  return largest;
}

bool FreeIndex::IsConsistent() const {
  std::size_t count = 0;
  std::size_t bytes = 0;
  for (unsigned i = 0; i < kClasses; ++i) {
    const bool marked = (words_[i / 64] & Bit(i)) != 0;
    if (marked != (heads_[i] != nullptr)) return false;
    const Block* previous = nullptr;
    for (const Block* block = heads_[i]; block != nullptr;
         block = block->free_next) {
      if (block->free_previous != previous) return false;
      if (ClassOf(block->size) != i) return false;
      if (!block->is_free) return false;
      ++count;
      bytes += block->size;
      previous = block;
    }
  }
  for (unsigned i = 0; i < kWords; ++i) {
    if (((groups_[i / 64] & Bit(i)) != 0) != (words_[i] != 0)) return false;
  }
  return count == count_ && bytes == total_bytes_;
}

}  // namespace strata
