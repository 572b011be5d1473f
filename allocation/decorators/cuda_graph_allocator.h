#ifndef STRATA_ALLOCATION_DECORATORS_CUDA_GRAPH_ALLOCATOR_H_
#define STRATA_ALLOCATION_DECORATORS_CUDA_GRAPH_ALLOCATOR_H_

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "strata/allocation/decorator.h"
#include "strata/allocation/decorators/registry.h"
#include "strata/allocation/streams/capture_gate.h"
#include "strata/allocation/streams/capture_hold.h"
#include "strata/allocation/streams/later_free.h"
#include "strata/platform/platform.h"

namespace strata {

// Holds memory that was allocated outside a capture while graphs of the capture
// may use it.
//
// Model: at each launch a graph reads and writes the addresses that it
//   captured. So this layer holds an allocation that is freed while its stream
//   is capturing, or that was recorded for a capturing stream. At its free it
//   goes to the pool of the capture. It returns here, through the layers below,
//   when the last graph is destroyed. Memory allocated inside a capture comes
//   from the pool of the capture (facade/graphs/graph_pool.h). There this layer
//   holds it for other captures that use it. Some strategies would have to wait
//   for the legacy stream at each free. They receive their frees when no
//   capture is announced.
// Threads: any thread.
// Cost: one load per call while no capture is announced. During a capture, a
//   device call per free, and a heap object per held allocation.
// Source: cuda_semantics.md C25, C26, K1, K4, K5, M7; paddle.md §3.7-5 (cell
//   "allocated outside, freed inside").
class CudaGraphAllocator final : public Decorator {
 public:
  // Uses the platform, CaptureHolds and TimelineTable of `context`. If one of
  // them is null, nothing is held. ChainStream::own_hold() is the
  // number of the chain's graph pool. The layer may outlive that pool, which
  // holds its memory itself.
  CudaGraphAllocator(std::shared_ptr<Allocator> underlying,
                     const ChainContext& context);

  void DoFree(Allocation* allocation) noexcept override;
  bool RecordStream(Allocation* allocation, Stream stream) noexcept override;
  bool RecordUse(Allocation* allocation, Stream stream,
                 Event event) noexcept override;
  void EraseStream(Allocation* allocation, Stream stream) noexcept override;
  const char* name() const override { return "cuda_graph"; }

 private:
  struct Use {
    Stream stream;
    // Expired if the pool is destroyed; then it has no graphs.
    std::weak_ptr<CaptureHold> hold;
  };
  using Uses = std::unordered_map<const Block*, std::vector<Use>>;

  using Holds = std::vector<std::shared_ptr<CaptureHold>>;

  // Adds to `holds` the captures of `stream`, except those of the pool `own_`.
  // Errors: std::bad_alloc.
  void AddHoldsOf(const Stream& stream, Holds& holds,
                  bool may_be_gone = false) const;
  bool IsHeld(const Stream& stream) const noexcept;
  void NoteUses(Block& block, const Stream& stream, const Holds& holds);
  void FreeBelow(Allocation* allocation) noexcept;
  bool any() const { return timelines_ != nullptr && timelines_->gate().any(); }

  const std::shared_ptr<Platform> platform_;
  const std::shared_ptr<CaptureHolds> captures_;
  const std::shared_ptr<TimelineTable> timelines_;  // null: no captures
  const std::uint64_t own_;  // order() of the pool of this chain; 0: none
  const std::shared_ptr<LaterFrees> later_;
  std::mutex mutex_;
  Uses uses_;  // of live allocations, in captures; guarded by mutex_
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_DECORATORS_CUDA_GRAPH_ALLOCATOR_H_
