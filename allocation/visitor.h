#ifndef STRATA_ALLOCATION_VISITOR_H_
#define STRATA_ALLOCATION_VISITOR_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "strata/platform/require_cxx20.h"

namespace strata {

class Allocator;

// What becomes of a block.
enum class BlockState : std::uint8_t {
  kLive,  // a user has it, or a layer that keeps more than users ask for: guard
  kFree,  // serves the next request that it fits
  // Freed, but kept from others until streams, or graphs that may use it, are
  // done; a stream may have what it freed itself again before.
  kDeferred,
  // The chunk of another strategy, which lists what is in it: not to be counted
  // twice.
  kLent,
};
const char* ToString(BlockState state);

// One piece of a chunk, as it was when the layer was visited.
struct BlockInfo {
  void* data = nullptr;
  std::size_t size_bytes = 0;
  void* chunk_base = nullptr;
  BlockState state = BlockState::kLive;

  bool is_free() const { return state == BlockState::kFree; }
};

// Walks a chain from the outermost layer inwards. No lock is held during a
// visit, so a visitor may allocate.
class AllocatorVisitor {
 public:
  AllocatorVisitor() = default;
  AllocatorVisitor(const AllocatorVisitor&) = delete;
  AllocatorVisitor& operator=(const AllocatorVisitor&) = delete;
  virtual ~AllocatorVisitor() = default;

  virtual void VisitLayer(const Allocator& layer) = 0;
  // Every block of a strategy, chunk by chunk in address order. Called right
  // after VisitLayer for a layer that keeps blocks. From
  // AllocatorFacade::AcceptAll also once for the chunk pool, with the chunks
  // that it offers and the blocks of strategies whose chains are gone.
  virtual void VisitBlocks(const Allocator& layer,
                           const std::vector<BlockInfo>& blocks);
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_VISITOR_H_
