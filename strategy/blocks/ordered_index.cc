#include "strata/strategy/blocks/ordered_index.h"

#include <algorithm>

namespace strata {

std::size_t OrderedIndex::LargestBytes() const {
  if (count_ == 0) return 0;
  Block* block = roots_[classes_.Last()];
  while (Right(block) != nullptr) block = Right(block);
  return block->size;
}

bool OrderedIndex::IsConsistent() const {
  std::size_t count = 0;
  std::size_t bytes = 0;
  bool in_order = classes_.IsConsistent();
  const Block* previous = nullptr;
  for (unsigned i = 0; i < SizeClasses::kCount; ++i) {
    if (classes_.IsMarked(i) != (roots_[i] != nullptr)) return false;
    // The predicate accepts no block, so FirstIf visits every block in order.
    FirstIf(roots_[i], 0, [&](Block* block) {
      in_order = in_order && block->is_free &&
                 SizeClasses::Of(block->size) == i &&
                 (previous == nullptr || IsBefore(previous, block));
      for (const Block* child : {Left(block), Right(block)}) {
        in_order = in_order &&
                   (child == nullptr || Priority(child) <= Priority(block));
      }
      previous = block;
      bytes += block->size;
      ++count;
      return false;
    });
  }
  return in_order && count == count_ && bytes == total_bytes_;
}

std::size_t OrderedIndex::DepthOf(Block* tree) {
  if (tree == nullptr) return 0;
  return 1 + std::max(DepthOf(Left(tree)), DepthOf(Right(tree)));
}

std::size_t OrderedIndex::Depth() const {
  std::size_t depth = 0;
  for (Block* root : roots_) depth = std::max(depth, DepthOf(root));
  return depth;
}

}  // namespace strata
