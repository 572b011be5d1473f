#ifndef STRATA_ALLOCATION_CUDA_GRAPH_ALLOCATOR_H_
#define STRATA_ALLOCATION_CUDA_GRAPH_ALLOCATOR_H_

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "strata/allocation/decorator.h"
#include "strata/allocation/registry.h"
#include "strata/allocation/streams/capture_gate.h"
#include "strata/allocation/streams/capture_hold.h"
#include "strata/allocation/streams/later_free.h"
#include "strata/platform/platform.h"

namespace strata {

// Keeps memory that was allocated outside a capture from being reused while
// graphs of the capture may use it.
//
// Model: a graph reads and writes the addresses that were passed while it was
//   captured, at each launch. So an allocation that is freed while its stream
//   is capturing, or that a capturing stream was recorded for, is handed to the
//   capture's pool when it is freed, and comes back here, through the layers
//   below, when the last graph is gone. What is allocated inside a capture
//   comes from its pool (facade/graph_pool.h), where this layer keeps it for
//   other captures that use it. A strategy that would have to wait for the
//   legacy stream at each free gets its frees when no capture is announced.
// Threads: any thread.
// Cost: one load per call while no capture is announced. During one, a device
//   call per free, and a heap object per allocation kept.
// Source: cuda_semantics.md C25, C26, K1, K4, K5, M7; paddle.md §3.7-5 (cell
//   "allocated outside, freed inside").
class CudaGraphAllocator final : public Decorator {
 public:
  // Of `context`: the platform, captures and timelines, which outlive this
  // layer; if one is null, nothing is kept. In the chain of a graph pool, which
  // keeps its memory by itself and which it may outlive, own_hold names that
  // pool.
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
    // A pool that is gone has no graphs any more.
    std::weak_ptr<CaptureHold> hold;
  };
  using Uses = std::unordered_map<const Block*, std::vector<Use>>;

  using Holds = std::vector<std::shared_ptr<CaptureHold>>;

  // Adds those of other pools than `own_`. Errors: std::bad_alloc.
  void AddHoldsOf(const Stream& stream, Holds& holds,
                  bool may_be_gone = false) const;
  // Whether a capture may be using what `stream` uses.
  bool IsHeld(const Stream& stream) const noexcept;
  void NoteUses(Block& block, const Stream& stream, const Holds& holds);
  // What no capture holds; `timelines_` is not null.
  void FreeBelow(Allocation* allocation) noexcept;
  bool any() const { return timelines_ != nullptr && timelines_->gate().any(); }

  const std::shared_ptr<Platform> platform_;
  const std::shared_ptr<CaptureHolds> captures_;
  const std::shared_ptr<TimelineTable> timelines_;  // null: nobody captures
  const std::uint64_t own_;  // order() of the pool that it is of; 0: of none
  const std::shared_ptr<LaterFrees> later_;
  std::mutex mutex_;
  Uses uses_;  // of live allocations, in captures; guarded by mutex_
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_CUDA_GRAPH_ALLOCATOR_H_
