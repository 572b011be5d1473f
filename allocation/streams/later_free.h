#ifndef STRATA_ALLOCATION_STREAMS_LATER_FREE_H_
#define STRATA_ALLOCATION_STREAMS_LATER_FREE_H_

#include <memory>

#include "strata/allocation/allocator.h"
#include "strata/allocation/streams/capture_gate.h"
#include "strata/allocation/streams/timeline_table.h"
#include "strata/platform/locks/spin_lock.h"

namespace strata {

// True if a free of `block` to `layer` must wait until no capture is announced.
// The free could wait for a stream that captures forbid to touch. Or it could
// release locked pages to the driver, which may then wait for the device. False
// for a block that a strategy split from a chunk: the strategy keeps it.
//
// Cost: a device call if captures are announced and the strategy may wait.
// Source: cuda_semantics.md C16, C19, M6.
bool MustFreeLater(const TimelineTable& timelines, Allocator& layer,
                   const Block& block) noexcept;

// Frees a block to `layer` after its free was postponed. Notifies requests that
// wait for memory.
void FreeAtLast(Allocator& layer, Block& block) noexcept;

// Frees that one layer receives when no capture is announced.
//
// Model: linked through the records of the blocks, so that a free needs no host
//   memory.
// Threads: any thread.
// Lifetime: shared; keeps itself and the layer alive while frees wait.
class LaterFrees final : public std::enable_shared_from_this<LaterFrees>,
                         private CaptureGate::Postponable {
 public:
  explicit LaterFrees(std::shared_ptr<Allocator> layer);

  // Calls DoFree() of the layer when no capture is announced. Until then the
  // block is not live, so a second free is detected.
  void Add(CaptureGate& gate, Allocation* allocation) noexcept;

 private:
  void End() noexcept override;

  const std::shared_ptr<Allocator> layer_;
  SpinLock lock_;
  // Linked by Block::free_previous; guarded by lock_, as is self_.
  Block* first_ = nullptr;
  std::shared_ptr<LaterFrees> self_;  // while postponed
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_STREAMS_LATER_FREE_H_
