#include "strata/allocation/streams/later_free.h"

#include <mutex>
#include <utility>

#include "strata/allocation/block_flags.h"

namespace strata {

bool MustFreeLater(const TimelineTable& timelines, Allocator& layer,
                   const Block& block) noexcept {
  const bool is_kept = block.chunk != nullptr && layer.hit_path() != nullptr;
  if (!timelines.gate().any() || is_kept) return false;
  return block.place().kind == PlaceKind::kPinned ||
         !timelines.MayTouch(layer.stream());
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
  std::shared_ptr<LaterFrees> self;  // dies last
  {
    const std::lock_guard<SpinLock> guard(lock_);
    block = std::exchange(first_, nullptr);
    self = std::move(self_);
  }
  while (block != nullptr) {
    Block* const next = block->free_previous;
    SetLive(*block, true);
    layer_->DoFree(block->allocation());
    block = next;
  }
}

}  // namespace strata
