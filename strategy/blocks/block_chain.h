#ifndef STRATA_STRATEGY_BLOCKS_BLOCK_CHAIN_H_
#define STRATA_STRATEGY_BLOCKS_BLOCK_CHAIN_H_

#include "strata/allocation/allocation.h"

namespace strata {

// Blocks linked through Block::free_previous and free_next, in no order.
//
// Threads: not thread-safe. The strategy's lock guards it.
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

#endif  // STRATA_STRATEGY_BLOCKS_BLOCK_CHAIN_H_
