#ifndef STRATA_STRATEGY_OPEN_BLOCKS_H_
#define STRATA_STRATEGY_OPEN_BLOCKS_H_

#include <cstddef>
#include <cstdint>

#include "strata/allocation/allocation.h"
#include "strata/strategy/block_list.h"

namespace strata {

// Blocks linked through Block::free_previous and free_next, in no order.
//
// Threads: none; the strategy's lock guards it.
// Cost: O(1).
class BlockChain {
 public:
  BlockChain() = default;
  BlockChain(const BlockChain&) = delete;
  BlockChain& operator=(const BlockChain&) = delete;

  void Insert(Block* block);
  // `block` is in this chain.
  void Remove(Block* block);
  Block* first() const { return first_; }

 private:
  Block* first_ = nullptr;
};

// The open blocks of an arena: free blocks next to a hole, an unmapped part of
// an address range.
//
// Model: an open block and its holes can become one larger block. The reach of
//   a block is the size of the run of free blocks and holes around it. A search
//   chooses the block of the smallest reach, so that long runs stay whole. A
//   tail is an open block whose hole ends its range; its reach counts as
//   infinite, and a search uses it last.
// Units: bytes.
// Threads: none; the strategy's lock guards it.
// Cost: O(1) to insert or remove; a search is O(open blocks and their runs).
// Source: memory_policy.md §5.2.
class OpenBlocks {
 public:
  // Whether `block` is beside a hole.
  static bool IsOpen(const Block& block) {
    return BlockList::IsHole(block.next) || BlockList::IsHole(block.previous);
  }
  // Whether the open block `block` is a tail.
  static bool IsTail(const Block& block);

  void Insert(Block* block, bool is_tail);
  void Remove(Block* block, bool is_tail) {
    (is_tail ? tails_ : inner_).Remove(block);
  }
  // A lower bound on the reach of every block that is no tail; SIZE_MAX without
  // one. A closed block of at most this size beats all of them.
  std::size_t least_reach() const { return least_reach_; }
  // The smallest tail of at least `bytes`, the lowest among equals; null if
  // there is none. O(tails): each range has at most one.
  Block* FindTail(std::size_t bytes) const;
  // The block of at least `bytes` whose reach is the smallest and below
  // `reach`, the lowest among equals. If `reach` is SIZE_MAX and there is none,
  // the smallest tail of at least `bytes`. Null if nothing fits.
  Block* Find(std::size_t bytes, std::size_t reach);
  // Calls `visit` with every block.
  template <class Visit>
  void ForEach(Visit visit) const {
    for (const BlockChain* chain : {&inner_, &tails_}) {
      for (Block* block = chain->first(); block != nullptr;
           block = block->free_next) {
        visit(*block);
      }
    }
  }

 private:
  BlockChain inner_;
  BlockChain tails_;
  std::size_t least_reach_ = SIZE_MAX;
};

inline Block* OpenBlocks::FindTail(std::size_t bytes) const {
  Block* best = nullptr;
  for (Block* tail = tails_.first(); tail != nullptr; tail = tail->free_next) {
    if (tail->size < bytes) continue;
    if (best == nullptr || tail->size < best->size ||
        (tail->size == best->size && tail->data < best->data)) {
      best = tail;
    }
  }
  return best;
}

inline void BlockChain::Insert(Block* block) {
  block->free_previous = nullptr;
  block->free_next = first_;
  if (first_ != nullptr) first_->free_previous = block;
  first_ = block;
}

inline void BlockChain::Remove(Block* block) {
  Block* const next = block->free_next;
  Block* const previous = block->free_previous;
  (previous != nullptr ? previous->free_next : first_) = next;
  if (next != nullptr) next->free_previous = previous;
}

}  // namespace strata

#endif  // STRATA_STRATEGY_OPEN_BLOCKS_H_
