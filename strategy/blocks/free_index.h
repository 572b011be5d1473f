#ifndef STRATA_STRATEGY_BLOCKS_FREE_INDEX_H_
#define STRATA_STRATEGY_BLOCKS_FREE_INDEX_H_

#include <array>
#include <cstddef>

#include "strata/allocation/allocation.h"
#include "strata/strategy/blocks/size_classes.h"

namespace strata {

// Free blocks by size. Finds the best fit without a tree.
//
// Model: one list per size class (SizeClasses); the sizes of a class differ by
//   at most 0.4 %. A search compares the first kProbes blocks of a class. It
//   takes the smallest that fits, at the lowest address among equals. So the
//   result is the best fit, except within classes of more than kProbes blocks.
//   A search never misses a block that fits in a class above the request's own.
// Units: bytes; every size is a multiple of kGranuleBytes and below 2^48.
// Threads: not thread-safe. The strategy's lock guards it.
// Cost: O(1); 67 KiB per index. Links are in the blocks: no heap.
// Source: hotpath.md §3 ("semi-log bitmap"), §6, §7.
class FreeIndex {
 public:
  static constexpr std::size_t kGranuleBytes = SizeClasses::kGranuleBytes;
  static constexpr int kProbes = 8;

  FreeIndex() = default;
  FreeIndex(const FreeIndex&) = delete;
  FreeIndex& operator=(const FreeIndex&) = delete;

  void Insert(Block* block);
  // `block` is in this index.
  void Remove(Block* block);
  // The best fit for `bytes`, still in the index; null if there is none.
  Block* FindBestFit(std::size_t bytes) const { return Search(bytes).block; }
  // Removes and returns the best fit for `bytes`; null if there is none.
  Block* TakeBestFit(std::size_t bytes);
  // The smallest block of at least `bytes` that `is_fit` accepts, still in the
  // index; null if there is none. O(blocks of at least that size).
  template <class Predicate>
  Block* FindBest(std::size_t bytes, Predicate is_fit) const;

  // Whether `a` is smaller, or of equal size at a lower address.
  static bool IsBetter(const Block* a, const Block* b) {
    return a->size < b->size || (a->size == b->size && a->data < b->data);
  }

  bool empty() const { return classes_.Next(0) == SizeClasses::kCount; }
  // Sums over all blocks. For tests; O(blocks + classes).
  struct Totals {
    std::size_t blocks = 0;
    std::size_t bytes = 0;
  };
  Totals Count() const;
  // Size of the largest block, to the accuracy of its class; 0 if there is
  // none.
  std::size_t LargestBytes() const;

  // Whether lists and bitmaps agree. For tests; O(blocks + classes).
  bool IsConsistent() const;

 private:
  struct Fit {
    Block* block = nullptr;
    unsigned size_class = 0;
  };

  Fit Search(std::size_t bytes) const;
  // The best block of a class that is not empty.
  Block* BestOf(unsigned size_class) const;
  // The best block of at least `bytes`; null if there is none.
  Block* BestOf(unsigned size_class, std::size_t bytes) const;
  void RemoveFrom(unsigned size_class, Block* block);

  // First blocks by class. Their free_previous is undefined, so that the
  // removal of a first block writes to no other block.
  std::array<Block*, SizeClasses::kCount> heads_{};
  SizeClasses classes_;  // A class is marked if its list is not empty.
};

template <class Predicate>
Block* FreeIndex::FindBest(std::size_t bytes, Predicate is_fit) const {
  unsigned size_class = SizeClasses::Of(bytes);
  Block* best = nullptr;
  while (best == nullptr && size_class < SizeClasses::kCount) {
    size_class = classes_.Next(size_class);
    if (size_class >= SizeClasses::kCount) break;
    for (Block* block = heads_[size_class]; block != nullptr;
         block = block->free_next) {
      if (block->size >= bytes && is_fit(*block) &&
          (best == nullptr || IsBetter(block, best))) {
        best = block;
      }
    }
    ++size_class;
  }
  return best;
}

// Inline, because they are most of a hit.

inline void FreeIndex::Insert(Block* block) {
  const unsigned size_class = SizeClasses::Of(block->size);
  Block* const head = heads_[size_class];
  heads_[size_class] = block;
  block->free_next = head;
  if (head != nullptr) {
    head->free_previous = block;
  } else {
    classes_.Mark(size_class);
  }
}

inline void FreeIndex::Remove(Block* block) {
  RemoveFrom(SizeClasses::Of(block->size), block);
}

inline void FreeIndex::RemoveFrom(unsigned size_class, Block* block) {
  Block* const next = block->free_next;
  if (heads_[size_class] == block) {
    heads_[size_class] = next;
    if (next == nullptr) classes_.Unmark(size_class);
    return;
  }
  Block* const previous = block->free_previous;
  previous->free_next = next;
  if (next != nullptr) next->free_previous = previous;
}

inline Block* FreeIndex::BestOf(unsigned size_class) const {
  Block* best = heads_[size_class];
  Block* block = best->free_next;
  for (int i = 1; i < kProbes && block != nullptr; ++i) {
    if (IsBetter(block, best)) best = block;
    block = block->free_next;
  }
  return best;
}

inline Block* FreeIndex::BestOf(unsigned size_class, std::size_t bytes) const {
  Block* best = nullptr;
  Block* block = heads_[size_class];
  for (int i = 0; i < kProbes && block != nullptr; ++i) {
    if (block->size >= bytes && (best == nullptr || IsBetter(block, best))) {
      best = block;
    }
    block = block->free_next;
  }
  return best;
}

inline FreeIndex::Fit FreeIndex::Search(std::size_t bytes) const {
  const unsigned own_class = SizeClasses::Of(bytes);
  if (own_class >= SizeClasses::kCount) return {};
  unsigned size_class = classes_.Next(own_class);
  if (size_class == own_class) {
    if (Block* block = BestOf(own_class, bytes)) return {block, own_class};
    size_class = classes_.Next(own_class + 1);
  }
  if (size_class == SizeClasses::kCount) return {};
  return {BestOf(size_class), size_class};
}

inline Block* FreeIndex::TakeBestFit(std::size_t bytes) {
  const Fit fit = Search(bytes);
  if (fit.block != nullptr) RemoveFrom(fit.size_class, fit.block);
  return fit.block;
}

}  // namespace strata

#endif  // STRATA_STRATEGY_BLOCKS_FREE_INDEX_H_
