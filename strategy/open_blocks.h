#ifndef STRATA_STRATEGY_OPEN_BLOCKS_H_
#define STRATA_STRATEGY_OPEN_BLOCKS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "strata/allocation/allocation.h"
#include "strata/strategy/block_list.h"

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

// The open blocks of an arena: free blocks next to a hole. A hole is an
// unmapped part of an address range.
//
// Model: an open block and its holes can become one larger block. The reach of
//   a block is its size plus the holes next to it. A search chooses the block
//   of the smallest reach, so that large room for one block stays contiguous. A
//   tail is an open block before a hole that ends the range; a search uses it
//   last. There are two lists per power of two of the reach, and one list of
//   tails. The neighbours of a block determine its list; they change only while
//   the block is in no list.
// Units: bytes.
// Threads: not thread-safe. The strategy's lock guards it.
// Cost: O(1) to insert or remove. A search is O(blocks of the lists that it
//   visits), and visits no list above the first one with a fit.
// Source: memory_policy.md §5.2, where the reach is the whole run of free
//   blocks and holes. No recording needs less memory with that definition.
class OpenBlocks {
 public:
  // Lists of blocks by reach: from 2^21 bytes, a page, to 2^48.
  static constexpr unsigned kLeastReachBits = 21;
  static constexpr std::size_t kLeastReachBytes = std::size_t{1}
                                                  << kLeastReachBits;
  static constexpr unsigned kReachLists = 2 * (48 - kLeastReachBits);
  static constexpr unsigned kTails = kReachLists;
  static constexpr unsigned kLists = kReachLists + 1;

  // Whether `block` is next to a hole.
  static bool IsOpen(const Block& block) {
    return BlockList::IsHole(block.next) || BlockList::IsHole(block.previous);
  }
  // The list of the open block `block`.
  static unsigned ListOf(const Block& block);

  void Insert(Block* block, unsigned list);
  void Remove(Block* block, unsigned list);
  // The block of at least `bytes`, not a tail, with the smallest reach below
  // `reach`; the lowest address among equals. Null if there is none.
  Block* FindInner(std::size_t bytes, std::size_t reach) const {
    // A hole is a page or more, so most closed blocks need no search.
    return reach > bytes + kLeastReachBytes && used_ != 0
               ? SearchInner(bytes, reach)
               : nullptr;
  }
  // The smallest tail of at least `bytes`, at the lowest address among equals;
  // null if there is none. O(tails): each range has at most one.
  Block* FindTail(std::size_t bytes) const;
  // Calls `visit` with every block.
  template <class Visit>
  void ForEach(Visit visit) const {
    for (const BlockChain& list : lists_) {
      for (Block* block = list.first(); block != nullptr;
           block = block->free_next) {
        visit(*block);
      }
    }
  }

 private:
  // The list of a reach of at least kLeastReachBytes.
  static unsigned ListOfReach(std::size_t reach);
  Block* SearchInner(std::size_t bytes, std::size_t reach) const;

  std::array<BlockChain, kLists> lists_;
  // One bit per list by reach; set if the list has a block.
  std::uint64_t used_ = 0;
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

#endif  // STRATA_STRATEGY_OPEN_BLOCKS_H_
