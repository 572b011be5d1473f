#include "strata/facade/front.h"

#include <mutex>
#include <string_view>
#include <utility>

namespace strata {
namespace {

// The Stat layer of a chain, so that hits are counted where walks are.
StatAllocator* FindStat(Allocator* layer) {
  while (layer != nullptr && std::string_view(layer->name()) != "stat") {
    layer = layer->underlying();
  }
  return static_cast<StatAllocator*>(layer);
}

}  // namespace

Front::Front(std::shared_ptr<PlaceState> state,
             std::shared_ptr<ChainStream> stream,
             std::shared_ptr<Allocator> chain)
    : Decorator(std::move(chain)),
      state_(std::move(state)),
      stream_(std::move(stream)),
      hit_path_(underlying()->hit_path()),
      stat_(FindStat(underlying())),
      hit_alignment_(underlying()->natural_alignment()),
      lock_(hit_path_ != nullptr ? hit_path_->hit_lock() : own_lock_) {
  set_debug_fill(state_->debug_fill());
}

Allocation* Front::TakeHit(std::size_t bytes) noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  Block* block = hit_path_->TakeCached(bytes);
  if (block == nullptr) return nullptr;
  block->requested = bytes;
  if (stat_ != nullptr) stat_->CountHit(*block);
  ++live_;
  return block->allocation();
}

Allocation* Front::TryAllocate(const Request& request,
                               Failure& failure) noexcept {
  if (hit_path_ != nullptr && request.alignment <= hit_alignment_ &&
      request.flags == 0) {
    if (Allocation* hit = TakeHit(request.bytes)) return hit;
  }
  Allocation* allocation = underlying()->TryAllocate(request, failure);
  if (allocation != nullptr) {
    const std::lock_guard<SpinLock> guard(lock_);
    ++live_;
  }
  return allocation;
}

void Front::DoFree(Allocation* allocation) noexcept {
  Block* block = allocation->block();
  if (hit_path_ == nullptr || (block->flags & kBlockMarked) != 0 ||
      block->offset_units != 0) {
    underlying()->DoFree(allocation);
    Unpin();
    return;
  }
  bool is_last = false;
  {
    const std::lock_guard<SpinLock> guard(lock_);
    if (stat_ != nullptr) stat_->CountGiven(*block);
    hit_path_->GiveCached(block);
    is_last = --live_ == 0 && orphan_;
  }
  if (is_last) Destroy();
}

void Front::Pin() noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  ++live_;
}

void Front::Unpin() noexcept {
  bool is_last = false;
  {
    const std::lock_guard<SpinLock> guard(lock_);
    is_last = --live_ == 0 && orphan_;
  }
  if (is_last) Destroy();
}

void Front::Drop() noexcept {
  state_->AddOrphan(*this);
  Pin();
  {
    const std::lock_guard<SpinLock> guard(lock_);
    orphan_ = true;
  }
  Unpin();
}

void Front::Destroy() noexcept {
  // The state outlives this front, which holds it.
  const std::shared_ptr<PlaceState> state = state_;
  state->RemoveOrphan(*this, stats());
  delete this;
}

}  // namespace strata
