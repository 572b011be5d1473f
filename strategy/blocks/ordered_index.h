#ifndef STRATA_STRATEGY_BLOCKS_ORDERED_INDEX_H_
#define STRATA_STRATEGY_BLOCKS_ORDERED_INDEX_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "strata/allocation/allocation.h"
#include "strata/strategy/blocks/size_classes.h"

namespace strata {

// Free blocks in the exact order of size, then address. Finds the smallest
// block that fits.
//
// Model: one treap per size class. Links are in the blocks; priorities are a
//   hash of the block addresses. Most classes hold one or a few blocks, and
//   cost a few instructions. A class of 10^5 blocks of equal size takes
//   logarithmic time.
// Units: bytes; every size is a multiple of 256 and below 2^48.
// Threads: not thread-safe. The strategy's lock guards it.
// Cost: O(log n) in the blocks of one class, O(1) in the number of classes and
//   of smaller blocks; no heap. 67 KiB.
// Source: tf_bfc.md R6, R8, W14, §5.1; paddle.md §3.4 rule 3. Both originals
//   use search trees for this order.
class OrderedIndex {
 public:
  // Which of two blocks of equal size is first.
  enum class AddressOrder : std::uint8_t { kAscending, kDescending };

  explicit OrderedIndex(AddressOrder order = AddressOrder::kAscending)
      : order_(order) {}
  OrderedIndex(const OrderedIndex&) = delete;
  OrderedIndex& operator=(const OrderedIndex&) = delete;

  void Insert(Block* block);
  // `block` is in this index.
  void Remove(Block* block);
  // The smallest block of at least `bytes`, first among equals, still in the
  // index; null if there is none.
  Block* Find(std::size_t bytes) const;
  // The first block of at least `bytes` that `accepts` accepts, in index order,
  // still in the index; null if there is none. O(blocks skipped).
  template <class Accepts>
  Block* FindIf(std::size_t bytes, const Accepts& accepts) const;

  std::size_t count() const { return count_; }
  std::size_t total_bytes() const { return total_bytes_; }
  // Exact size of the largest block; 0 if there is none.
  std::size_t LargestBytes() const;

  // Whether order, shape and counters are right. For tests; O(blocks).
  bool IsConsistent() const;
  // Most blocks on a path from a root. For tests; O(blocks).
  std::size_t Depth() const;

 private:
  static Block*& Left(Block* block) { return block->free_previous; }
  static Block*& Right(Block* block) { return block->free_next; }
  static std::uint64_t Priority(const Block* block) {
    // Blocks often lie at equal distances. For some distances, one
    // multiplication gives priorities that rise from block to block, so the
    // tree would degenerate to a list. Folding and a second multiplication
    // avoid that.
    std::uint64_t hash = (reinterpret_cast<std::uintptr_t>(block->data) >> 8) *
                         0x9E3779B97F4A7C15U;
    hash ^= hash >> 32;
    return hash * 0xD6E8FEB86659FD93U;
  }
  bool IsBefore(const Block* a, const Block* b) const {
    if (a->size != b->size) return a->size < b->size;
    return (a->data < b->data) == (order_ == AddressOrder::kAscending);
  }

  static std::size_t DepthOf(Block* tree);
  static Block* LowerBound(Block* tree, std::size_t bytes);
  template <class Accepts>
  static Block* FirstIf(Block* tree, std::size_t bytes, const Accepts& accepts);

  const AddressOrder order_;
  // count_ and total_bytes_ change together but are apart. Compilers would
  // merge neighbours into vector instructions, which are more than two
  // additions.
  std::size_t count_ = 0;
  std::array<Block*, SizeClasses::kCount> roots_{};
  SizeClasses classes_;  // A class is marked if its root is not null.
  std::size_t total_bytes_ = 0;
};

// Inline, because they are most of a hit.

inline void OrderedIndex::Insert(Block* block) {
  const unsigned size_class = SizeClasses::Of(block->size);
  Block** link = &roots_[size_class];
  if (*link == nullptr) {
    classes_.Mark(size_class);
  } else {
    const std::uint64_t priority = Priority(block);
    while (*link != nullptr && Priority(*link) >= priority) {
      link = IsBefore(block, *link) ? &Left(*link) : &Right(*link);
    }
  }
  // Splits the subtree into the blocks before `block` and the blocks after it.
  Block* rest = *link;
  *link = block;
  Block** before = &Left(block);
  Block** after = &Right(block);
  while (rest != nullptr) {
    if (IsBefore(rest, block)) {
      *before = rest;
      before = &Right(rest);
      rest = *before;
    } else {
      *after = rest;
      after = &Left(rest);
      rest = *after;
    }
  }
  *before = nullptr;
  *after = nullptr;
  ++count_;
  total_bytes_ += block->size;
}

inline void OrderedIndex::Remove(Block* block) {
  const unsigned size_class = SizeClasses::Of(block->size);
  Block** link = &roots_[size_class];
  while (*link != block) {
    link = IsBefore(block, *link) ? &Left(*link) : &Right(*link);
  }
  // Joins the trees on both sides of the block.
  Block* before = Left(block);
  Block* after = Right(block);
  while (before != nullptr && after != nullptr) {
    if (Priority(before) >= Priority(after)) {
      *link = before;
      link = &Right(before);
      before = *link;
    } else {
      *link = after;
      link = &Left(after);
      after = *link;
    }
  }
  *link = before != nullptr ? before : after;
  if (roots_[size_class] == nullptr) classes_.Unmark(size_class);
  --count_;
  total_bytes_ -= block->size;
}

// Equal sizes are in address order, so the leftmost one is first.
inline Block* OrderedIndex::LowerBound(Block* tree, std::size_t bytes) {
  Block* best = nullptr;
  while (tree != nullptr) {
    if (tree->size >= bytes) {
      best = tree;
      tree = Left(tree);
    } else {
      tree = Right(tree);
    }
  }
  return best;
}

inline Block* OrderedIndex::Find(std::size_t bytes) const {
  const unsigned own_class = SizeClasses::Of(bytes);
  if (own_class >= SizeClasses::kCount) return nullptr;
  unsigned size_class = classes_.Next(own_class);
  if (size_class == own_class) {
    if (Block* block = LowerBound(roots_[own_class], bytes)) return block;
    size_class = classes_.Next(own_class + 1);
  }
  return size_class < SizeClasses::kCount
             ? LowerBound(roots_[size_class], bytes)
             : nullptr;
}

template <class Accepts>
Block* OrderedIndex::FirstIf(Block* tree, std::size_t bytes,
                             const Accepts& accepts) {
  while (tree != nullptr) {
    if (tree->size >= bytes) {
      if (Block* block = FirstIf(Left(tree), bytes, accepts)) return block;
      if (accepts(tree)) return tree;
    }
    tree = Right(tree);
  }
  return nullptr;
}

template <class Accepts>
Block* OrderedIndex::FindIf(std::size_t bytes, const Accepts& accepts) const {
  for (unsigned i = classes_.Next(SizeClasses::Of(bytes));
       i < SizeClasses::kCount; i = classes_.Next(i + 1)) {
    if (Block* block = FirstIf(roots_[i], bytes, accepts)) return block;
  }
  return nullptr;
}

}  // namespace strata

#endif  // STRATA_STRATEGY_BLOCKS_ORDERED_INDEX_H_
