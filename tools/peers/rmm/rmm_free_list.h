#ifndef STRATA_TOOLS_PEERS_RMM_RMM_FREE_LIST_H_
#define STRATA_TOOLS_PEERS_RMM_RMM_FREE_LIST_H_

#include <cstddef>
#include <list>

#include "strata/platform/memory_types.h"

namespace strata::peers {

// A free piece of a pool.
struct RmmBlock {
  DevicePtr address = 0;  // 0: no block
  std::size_t bytes = 0;
  bool is_head = false;  // a chunk from the device begins here

  bool IsBefore(const RmmBlock& other) const {
    return address + bytes == other.address && !other.is_head;
  }
};

// Free blocks in address order, joined where they touch. Blocks of different
// chunks are not joined.
//
// Threads: externally synchronised.
// Cost: linear in the number of blocks: a plain list, as in the original.
// Source: rmm_cccl_umpire.md §1.3.
class RmmFreeList {
 public:
  void Insert(const RmmBlock& block);
  // Inserts all blocks of `other`.
  void Insert(const RmmFreeList& other);
  // Removes the smallest block with at least `bytes`; among equal ones the one
  // with the lowest address. Returns no block if there is none.
  RmmBlock TakeBestFit(std::size_t bytes);

  const std::list<RmmBlock>& blocks() const { return blocks_; }

 private:
  std::list<RmmBlock> blocks_;
};

}  // namespace strata::peers

#endif  // STRATA_TOOLS_PEERS_RMM_RMM_FREE_LIST_H_
