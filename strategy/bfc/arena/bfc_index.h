#ifndef STRATA_STRATEGY_BFC_ARENA_BFC_INDEX_H_
#define STRATA_STRATEGY_BFC_ARENA_BFC_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "strata/allocation/allocation.h"
#include "strata/strategy/blocks/free_index.h"
#include "strata/strategy/blocks/ordered_index.h"

namespace strata {

// Choice among the free blocks that fit.
enum class BfcPlacement : std::uint8_t {
  kCompat,  // The smallest, then the lowest address: as the original.
  kFast,    // As FreeIndex: O(1), best fit except for many equal ones.
};

// The free blocks of BfcAllocator, in the index that the placement requires.
//
// Threads: not thread-safe. The allocator's lock guards it.
// Cost: the cost of the index, and one predicted branch.
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
  // Removes and returns the first block of at least `bytes`; null if there is
  // none.
  Block* Take(std::size_t bytes) {
    if (ordered_ == nullptr) {
      return TakeFast(bytes, bytes, [](const Block*) { return true; });
    }
    Block* block = ordered_->Find(bytes);
    if (block != nullptr) Remove(block);
    return block;
  }
  // Removes and returns the first block of at least `bytes` that `accepts`
  // accepts; null if there is none. Every block of at least `surely` bytes is
  // acceptable; the fast index prefers the first of these.
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
  // Searches past the first blocks of a class before it fails, because growth
  // is worse.
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

  std::unique_ptr<OrderedIndex> ordered_;  // Null: fast_ is used.
  std::unique_ptr<FreeIndex> fast_;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_BFC_ARENA_BFC_INDEX_H_
