#ifndef STRATA_TESTS_TESTING_LAYERS_BLOCK_COUNTER_H_
#define STRATA_TESTS_TESTING_LAYERS_BLOCK_COUNTER_H_

#include <cstdint>
#include <cstring>
#include <vector>

#include "strata/allocation/allocator.h"
#include "strata/allocation/visitor.h"

namespace strata {

// Number of blocks of a place by state, and their bytes.
struct BlockCounts {
  bool has_blocks = false;  // the strategy lists its blocks
  std::uint64_t live = 0;
  std::uint64_t live_bytes = 0;
  std::uint64_t deferred = 0;
  std::uint64_t lent = 0;
  std::uint64_t bytes = 0;  // of all blocks; a lent block counts once
};

// Counts the blocks that it visits.
class BlockCounter final : public AllocatorVisitor, public BlockCounts {
 public:
  void VisitLayer(const Allocator& /*layer*/) override {}
  void VisitBlocks(const Allocator& layer,
                   const std::vector<BlockInfo>& blocks) override {
    if (std::strcmp(layer.name(), "chunk_pool") != 0) has_blocks = true;
    for (const BlockInfo& block : blocks) {
      // The chunk of the borrower already counts these bytes.
      if (block.state == BlockState::kLent) {
        ++lent;
        continue;
      }
      bytes += block.size_bytes;
      if (block.state == BlockState::kDeferred) ++deferred;
      if (block.state != BlockState::kLive) continue;
      ++live;
      live_bytes += block.size_bytes;
    }
  }
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_LAYERS_BLOCK_COUNTER_H_
