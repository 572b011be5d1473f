#ifndef STRATA_STRATEGY_BFC_BFC_INDEX_H_
#define STRATA_STRATEGY_BFC_BFC_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "strata/allocation/allocation.h"
#include "strata/strategy/free_index.h"
#include "strata/strategy/ordered_index.h"

namespace strata {

// How BfcAllocator chooses among the free blocks that fit.
enum class BfcPlacement : std::uint8_t {
  kCompat,  // the smallest, then the lowest address: the original's choice
  kFast,    // as FreeIndex: O(1), best fit but for long ties
};

// The free blocks of BfcAllocator, in the index that the placement needs.
//
// Threads: none; the allocator's lock guards it.
// Cost: that of the index, and one predicted branch.
class BfcIndex {
 public:
  BfcIndex(BfcPlacement placement, OrderedIndex::AddressOrder order) {
    if (placement == BfcPlacement::kCompat) {
      ordered_ = std::make_unique<OrderedIndex>(order);
    } else {
      fast_ = std::make_unique<FreeIndex>();
    }
  }

  void Insert(Block* block) {
    block->is_free = true;
    ordered_ != nullptr ? ordered_->Insert(block) : fast_->Insert(block);
  }
  void Remove(Block* block) {
    block->is_free = false;
    ordered_ != nullptr ? ordered_->Remove(block) : fast_->Remove(block);
  }
  // The first block of at least `bytes`, taken out; null if there is none.
  Block* Take(std::size_t bytes) {
    if (ordered_ == nullptr) {
      return TakeFast(bytes, bytes, [](const Block*) { return true; });
    }
    Block* block = ordered_->Find(bytes);
    if (block != nullptr) Remove(block);
    return block;
  }
  // The same, of those that `accepts`. The fast index takes the first of at
  // least `surely` bytes, which every block of that size is accepted for, if
  // there is one.
  template <class Accepts>
  Block* TakeIf(std::size_t bytes, std::size_t surely, const Accepts& accepts) {
    if (ordered_ == nullptr) return TakeFast(bytes, surely, accepts);
    Block* block = ordered_->FindIf(bytes, accepts);
    if (block != nullptr) Remove(block);
    return block;
  }

  std::size_t LargestBytes() const {
    return ordered_ != nullptr ? ordered_->LargestBytes()
                               : fast_->LargestBytes();
  }
  // For tests; O(blocks).
  bool IsConsistent() const {
    return ordered_ != nullptr ? ordered_->IsConsistent()
                               : fast_->IsConsistent();
  }

 private:
  // Before it says that there is none, it looks at more than the first blocks
  // of a class: to grow is worse.
  template <class Accepts>
  Block* TakeFast(std::size_t bytes, std::size_t surely,
                  const Accepts& accepts) {
    Block* block = fast_->TakeBestFit(surely);
    if (block != nullptr) {
      block->is_free = false;
      return block;
    }
    block = fast_->FindBest(bytes, [&](Block& one) { return accepts(&one); });
    if (block != nullptr) Remove(block);
    return block;
  }

  std::unique_ptr<OrderedIndex> ordered_;  // null: fast_ is used
  std::unique_ptr<FreeIndex> fast_;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_BFC_BFC_INDEX_H_
