#ifndef STRATA_ALLOCATION_VISITOR_H_
#define STRATA_ALLOCATION_VISITOR_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "strata/base/require_cxx20.h"

namespace strata {

class Allocator;

// State of a block.
enum class BlockState : std::uint8_t {
  kLive,  // held by a user, or by a layer that adds memory of its own (guard)
  kFree,  // available to the next request that it fits
  // Freed, but not available until streams or graphs that may use it have
  // completed. The stream that freed it may reuse it earlier.
  kDeferred,
  // A chunk of another strategy, which lists the blocks in it. Not to be
  // counted twice.
  kLent,
};
const char* ToString(BlockState state);

// One piece of a chunk at the time of the visit.
struct BlockInfo {
  void* data = nullptr;
  std::size_t size_bytes = 0;
  void* chunk_base = nullptr;
  BlockState state = BlockState::kLive;

  bool is_free() const { return state == BlockState::kFree; }
};

// Visits a chain from the outermost layer inwards. No lock is held during a
// visit, so a visitor may allocate.
class AllocatorVisitor {
 public:
  AllocatorVisitor() = default;
  AllocatorVisitor(const AllocatorVisitor&) = delete;
  AllocatorVisitor& operator=(const AllocatorVisitor&) = delete;
  virtual ~AllocatorVisitor() = default;

  virtual void VisitLayer(const Allocator& layer) = 0;
  // Lists every block of a strategy, chunk by chunk, in address order. Called
  // right after VisitLayer for a layer that holds blocks.
  // AllocatorFacade::AcceptAll also calls it once for the chunk pool, with the
  // chunks that the pool offers and the blocks that remain from destroyed
  // chains.
  virtual void VisitBlocks(const Allocator& layer,
                           const std::vector<BlockInfo>& blocks);
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_VISITOR_H_
