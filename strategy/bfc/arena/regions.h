#ifndef STRATA_STRATEGY_BFC_ARENA_REGIONS_H_
#define STRATA_STRATEGY_BFC_ARENA_REGIONS_H_

#include <cstddef>

#include "strata/allocation/allocation.h"

namespace strata {

// Memory that BfcAllocator allocated from the system, tiled by blocks. It has
// one piece, or several that are adjacent in the address space. `memory` is the
// lowest piece; the others follow through Block::next of the pieces' records.
struct BfcRegion : Chunk {
  std::size_t size = 0;         // Bytes of all pieces.
  std::size_t live_blocks = 0;  // In use.

  std::byte* begin() const { return memory->block()->data; }
  std::byte* end() const { return begin() + size; }
  BfcRegion* next_region() const { return static_cast<BfcRegion*>(next); }
};

inline BfcRegion& RegionOf(Block* block) {
  return static_cast<BfcRegion&>(*block->chunk);
}

// The regions of a BfcAllocator in address order.
//
// Threads: not thread-safe. The allocator's lock guards it.
// Cost: O(regions) to add one, O(1) to remove one.
// Source: tf_bfc.md R24.
class BfcRegions {
 public:
  BfcRegions() = default;
  BfcRegions(const BfcRegions&) = delete;
  BfcRegions& operator=(const BfcRegions&) = delete;

  // Adds `region`; its memory becomes the one block `block`.
  void Add(BfcRegion* region, Block* block);
  // Removes `region`; its blocks stay linked.
  void Remove(BfcRegion* region);
  // The region that ends at `address`; null if there is none.
  BfcRegion* EndingAt(const std::byte* address) const;
  // Appends the pieces and blocks of `from` to `into`. `from` is not in the
  // list, and begins where `into` ends.
  void Append(BfcRegion* into, BfcRegion* from);

  // Splits `block`: it becomes the low `low_bytes`; `record`, with a fresh
  // note, becomes the rest. Returns `record`.
  static Block* Split(Block* block, std::size_t low_bytes, Block* record);

  BfcRegion* first() const { return static_cast<BfcRegion*>(first_); }
  std::size_t count() const { return count_; }
  std::size_t bytes() const { return bytes_; }

  // Whether the blocks tile the regions and the counts agree. For tests;
  // O(blocks).
  bool IsConsistent() const;

 private:
  Chunk* first_ = nullptr;
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_BFC_ARENA_REGIONS_H_
