#include "strata/allocation/streams/later_free.h"

#include <mutex>
#include <utility>

#include "strata/allocation/block_flags.h"
#include "strata/allocation/reclaim/reclaimer.h"

namespace strata {

bool MustFreeLater(const TimelineTable& timelines, Allocator& layer,
                   const Block& block) noexcept {
  const bool is_kept = block.chunk != nullptr && layer.hit_path() != nullptr;
  if (!timelines.gate().any() || is_kept) return false;
  if (block.place().kind == PlaceKind::kPinned) return true;
  const Stream own = layer.stream();
  return own.uid != 0 && !timelines.MayTouch(own);
}

void FreeAtLast(Allocator& layer, Block& block) noexcept {
  const std::size_t bytes = block.size;
  Reclaimer* const ladder = layer.reclaimer();
  SetLive(block, true);
  layer.DoFree(block.allocation());
  if (ladder != nullptr) ladder->retry().NotifyFree(bytes);
}

LaterFrees::LaterFrees(std::shared_ptr<Allocator> layer)
    : layer_(std::move(layer)) {}

void LaterFrees::Add(CaptureGate& gate, Allocation* allocation) noexcept {
  Block* block = allocation->block();
  SetLive(*block, false);
  {
    const std::lock_guard<SpinLock> guard(lock_);
    block->free_previous = std::exchange(first_, block);
    if (self_ != nullptr) return;
    self_ = shared_from_this();
  }
  gate.EndLater(*this);
}

void LaterFrees::End() noexcept {
  Block* block = nullptr;
  std::shared_ptr<LaterFrees> self;  // destroyed last
  {
    const std::lock_guard<SpinLock> guard(lock_);
    block = std::exchange(first_, nullptr);
    self = std::move(self_);
  }
  while (block != nullptr) {
    Block* const next = block->free_previous;
    FreeAtLast(*layer_, *block);
    block = next;
  }
}

}  // namespace strata
