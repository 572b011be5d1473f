#ifndef STRATA_STRATEGY_BLOCKS_OPEN_BLOCKS_H_
#define STRATA_STRATEGY_BLOCKS_OPEN_BLOCKS_H_

#include <cstddef>

#include "strata/allocation/allocation.h"
#include "strata/strategy/blocks/block_list.h"

namespace strata {

// The open blocks of one arena (docs/rules/virtual_memory.md): free blocks next
// to a large hole. A hole is an unmapped part of an address range.
//
// Model: an open block and its holes can become one large block, so a search
//   uses open blocks last. The reach of a block is its size plus the holes next
//   to it; it has no bound if a hole ends the range. A search chooses the
//   smallest reach. A block becomes open when it is freed next to a large hole,
//   or when a block next to it becomes such a hole. It stays open while the
//   hole gets smaller. Its size may change while it is in the list.
// Units: bytes.
// Threads: not thread-safe. The strategy's lock guards it.
// Cost: O(1) to insert or remove. A search is O(open blocks), which are few.
// Source: memory_policy.md §5.2; docs/rules/virtual_memory.md has the
//   recordings by the size of a large hole.
class OpenBlocks : public BlockChain {
 public:
  // The least size of a large hole that does not end its range. Bytes.
  static constexpr std::size_t kLargeHoleBytes = std::size_t{384} << 20;

  // True if `block` is next to a large hole.
  static bool IsOpen(const Block& block) {
    return IsLargeHole(block.next) || IsLargeHole(block.previous);
  }
  // True if a cut takes the lower part of `block`, which is open, so that the
  // rest is next to the large hole. If only a smaller hole is left, the rest is
  // next to that.
  static bool CutsLow(const Block& block) {
    return IsLargeHole(block.next) ||
           (BlockList::IsHole(block.next) && !IsLargeHole(block.previous));
  }
  // The block of at least `bytes` with the smallest reach; among equals the
  // smallest, then the lowest. Null if there is none.
  Block* Find(std::size_t bytes) const;
  // Calls `visit` with every block.
  template <class Visit>
  void ForEach(Visit visit) const {
    for (Block* block = first(); block != nullptr; block = block->free_next) {
      visit(*block);
    }
  }

 private:
  static bool IsLargeHole(const Block* block) {
    return BlockList::IsHole(block) &&
           (block->size >= kLargeHoleBytes || block->next == nullptr);
  }
};

}  // namespace strata

#endif  // STRATA_STRATEGY_BLOCKS_OPEN_BLOCKS_H_
