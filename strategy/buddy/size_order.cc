#include "strata/strategy/buddy/size_order.h"

namespace strata {

std::size_t SizeOrder::LargestBytes() const {
  for (unsigned word = kWords; word-- > 0;) {
    if (words_[word] == 0) continue;
    Block* block =
        roots_[word * 64 + static_cast<unsigned>(std::bit_width(words_[word])) -
               1];
    while (Higher(block) != nullptr) block = Higher(block);
    return block->size;
  }
  return 0;
}

bool SizeOrder::Check(Block* tree, unsigned size_class, const Block*& previous,
                      Sums& sums) {
  if (tree == nullptr) return true;
  for (const Block* child : {Lower(tree), Higher(tree)}) {
    if (child != nullptr && Priority(child) > Priority(tree)) return false;
  }
  if (!Check(Lower(tree), size_class, previous, sums)) return false;
  if (!tree->is_free || ClassOf(tree->size) != size_class ||
      (previous != nullptr && !IsBefore(previous, tree))) {
    return false;
  }
  previous = tree;
  ++sums.count;
  sums.bytes += tree->size;
  return Check(Higher(tree), size_class, previous, sums);
}

bool SizeOrder::IsConsistent() const {
  Sums sums;
  for (unsigned i = 0; i < kClasses; ++i) {
    const bool marked = (words_[i / 64] & Bit(i)) != 0;
    const Block* previous = nullptr;
    if (marked != (roots_[i] != nullptr) ||
        !Check(roots_[i], i, previous, sums)) {
      return false;
    }
  }
  return sums.count == count_ && sums.bytes == total_bytes_;
}

}  // namespace strata
