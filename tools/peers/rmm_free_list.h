#ifndef STRATA_TOOLS_PEERS_RMM_FREE_LIST_H_
#define STRATA_TOOLS_PEERS_RMM_FREE_LIST_H_

#include <cstddef>
#include <list>

#include "strata/platform/memory_types.h"

namespace strata {

// A free piece of a pool.
struct RmmBlock {
  DevicePtr address = 0;  // 0: no block
  std::size_t bytes = 0;
  bool is_head = false;  // whether a chunk from the device begins here

  bool IsBefore(const RmmBlock& other) const {
    return address + bytes == other.address && !other.is_head;
  }
};

// Free blocks in the order of their addresses, joined where they touch; blocks
// of different chunks stay apart.
//
// Threads: externally synchronised.
// Cost: linear in the number of blocks, as in the original: it is a plain list.
// Source: rmm_cccl_umpire.md §1.3.
class RmmFreeList {
 public:
  void Insert(const RmmBlock& block);
  // Inserts all blocks of `other`.
  void Insert(const RmmFreeList& other);
  // Takes the smallest block with at least `bytes`, of those the one with the
  // lowest address; none if there is no such block.
  RmmBlock TakeBestFit(std::size_t bytes);

  const std::list<RmmBlock>& blocks() const { return blocks_; }

 private:
  std::list<RmmBlock> blocks_;
};

}  // namespace strata

#endif  // STRATA_TOOLS_PEERS_RMM_FREE_LIST_H_
