#ifndef STRATA_ALLOCATION_STREAMS_LATER_FREE_H_
#define STRATA_ALLOCATION_STREAMS_LATER_FREE_H_

#include <memory>

#include "strata/allocation/allocator.h"
#include "strata/allocation/streams/capture_gate.h"
#include "strata/allocation/streams/timeline_table.h"
#include "strata/platform/spin_lock.h"

namespace strata {

// Whether a free of `block` to `layer` has to wait until no capture is
// announced: it could wait for a stream that captures forbid to touch, or give
// locked pages to the driver, which may then wait for the device. A strategy
// keeps what it cut from a chunk, and does neither.
//
// Cost: a device call if captures are announced and the strategy may wait.
// Source: cuda_semantics.md C16, C19, M6.
bool MustFreeLater(const TimelineTable& timelines, Allocator& layer,
                   const Block& block) noexcept;

// `layer` gets a block that was freed before but could not be given to it, and
// those that wait for memory know it.
void FreeAtLast(Allocator& layer, Block& block) noexcept;

// What is freed to one layer once no capture is announced.
//
// Model: linked through the records of what is freed, so that a free needs no
//   host memory.
// Threads: any thread.
// Lifetime: shared; keeps itself and the layer while anything waits.
class LaterFrees final : public std::enable_shared_from_this<LaterFrees>,
                         private Postponable {
 public:
  explicit LaterFrees(std::shared_ptr<Allocator> layer);

  // Calls DoFree of the layer when no capture is announced any more. Until then
  // nobody may free it again.
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
