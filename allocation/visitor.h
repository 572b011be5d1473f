#ifndef STRATA_ALLOCATION_VISITOR_H_
#define STRATA_ALLOCATION_VISITOR_H_

#include <cstddef>
#include <vector>

namespace strata {

class Allocator;

// One piece of a chunk, as it was when the layer was visited.
struct BlockInfo {
  void* data = nullptr;
  std::size_t size_bytes = 0;
  void* chunk_base = nullptr;
  bool is_free = false;
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
  // after VisitLayer for a layer that keeps blocks.
  virtual void VisitBlocks(const Allocator& layer,
                           const std::vector<BlockInfo>& blocks);
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_VISITOR_H_
