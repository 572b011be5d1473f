#include "strata/facade/chains/front.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace strata {

Front::Front(const Services& services, std::shared_ptr<ChainStream> stream,
             std::shared_ptr<Allocator> layers, Role role)
    : Chain(services, std::move(stream), std::move(layers), role),
      hit_alignment_(underlying()->natural_alignment()),
      takes_remote_frees_(hit_path_ != nullptr && hit_path_->takes_all() &&
                          hit_path_->hit_lock() != nullptr) {
  Front::set_debug_fill(services.debug_fill);
  set_allocation_log(services.allocation_log);
}

void Front::set_debug_fill(const DebugFill* fill) {
  Decorator::set_debug_fill(fill);
  const std::lock_guard<ChainLock> guard(hit_.lock);
  const bool is_plain = fill == nullptr && hit_path_ != nullptr && !is_orphan();
  hit_.attention = is_plain ? &gate_.attention() : &ChainState::kNeverPlain;
  // Not while requests wait for memory: a queued free notifies no request.
  if (hit_.is_plain()) {
    OpenToFrees();
  } else {
    hit_.lock.Close();
  }
}

void Front::OpenToFrees() noexcept {
  if (takes_remote_frees_) hit_.lock.Open(*this);
}

Allocation* Front::AllocFirst(std::size_t bytes) {
  retry_.CountThread();
  return Alloc(hit_, bytes, ThisThread());
}

[[gnu::noinline]] Allocation* Front::AllocContended(std::size_t bytes) {
  ThreadState& self = ThisThread();
  hit_.lock.lock(self);
  return AllocLocked(hit_, bytes, self);
}

[[gnu::noinline]] Allocation* Front::AllocPastCache(ChainState& hit,
                                                    std::size_t bytes,
                                                    ThreadState& self) {
  Block* block = hit.lock.TakeIn() ? hit.cache.Take(bytes) : nullptr;
  if (block == nullptr && bytes != 0) block = hit_path_->TakeCached(bytes);
  if (block == nullptr) [[unlikely]] {
    return AllocSlowly(bytes);
  }
  Start(hit, block, bytes);
  hit.EndCount(self);
  return block->allocation();
}

[[gnu::noinline]] Allocation* Front::AllocBeyondPeak(ChainState& hit,
                                                     Block* block) noexcept {
  hit.RaisePeaks();
  return block->allocation();
}

[[gnu::noinline]] Allocation* Front::AllocSlowly(std::size_t bytes) {
  hit_.lock.unlock();
  return Allocate(Request{bytes}).release();
}

Allocation* Front::TakeHit(std::size_t bytes) noexcept {
  retry_.CountThread();
  hit_.lock.lock();
  Block* block = hit_path_->Take(bytes);
  if (block == nullptr) {
    hit_.lock.unlock();
    return nullptr;
  }
  block->requested = bytes;
  hit_.Count(*block);
  hit_.EndCount();
  return block->allocation();
}

Allocation* Front::TryAllocate(const Request& request,
                               Failure& failure) noexcept {
  if (gate_.any()) return WalkGated(request, failure);
  if (hit_path_ != nullptr && request.alignment <= hit_alignment_ &&
      request.flags == 0 && request.freed_before == 0) {
    if (Allocation* hit = TakeHit(request.bytes)) return hit;
  }
  return Walk(request, failure);
}

void Front::DoFree(Allocation* allocation) noexcept {
  if (IsPlain(*allocation->block())) return FreePlain(allocation);
  FreeSlowly(allocation);
}

inline bool Front::GiveAtOnce(ChainState& hit, Block* block) noexcept {
  // The cache overwrites it.
  const std::size_t requested = block->requested;
  if (!hit.cache.Give(block)) return false;
  hit.counts.Uncount(*block, requested);
  return true;
}

[[gnu::always_inline]] inline void Front::FreeLocked(
    ChainState& hit, Allocation* allocation, ThreadState& self) noexcept {
  if (!hit.is_plain()) [[unlikely]] {
    hit.lock.unlock(self);
    return FreeSlowly(allocation);
  }
  if (!GiveAtOnce(hit, allocation->block())) {
    return FreePastCache(hit, allocation, self);
  }
  hit.lock.unlock(self);
}

[[gnu::aligned(64)]] void Front::FreePlain(Allocation* allocation) noexcept {
  ChainState& hit = hit_;
  ThreadState& self = ThisThread();
  if (!hit.lock.try_lock(self)) [[unlikely]] {
    return FreeContended(allocation);
  }
  FreeLocked(hit, allocation, self);
}

[[gnu::noinline]] void Front::FreePastCache(ChainState& hit,
                                            Allocation* allocation,
                                            ThreadState& self) noexcept {
  if (!retry_.knows(self)) [[unlikely]] {
    hit.lock.unlock(self);
    return FreeSlowly(allocation);
  }
  Block* const block = allocation->block();
  // Count first: once the cache has the block, another thread may own it.
  hit.counts.Uncount(*block);
  if (hit_path_->GiveCached(block)) [[likely]] {
    return hit.lock.unlock(self);
  }
  hit.counts.Recount(*block);
  hit.lock.unlock(self);
  WalkFree(allocation);
}

[[gnu::noinline]] void Front::FreeContended(Allocation* allocation) noexcept {
  retry_.CountThread();
  if (gate_.any()) return FreeSlowly(allocation);
  if (Leave(*allocation->block())) return;
  ThreadState& self = ThisThread();
  hit_.lock.lock(self);
  if (hit_.is_plain()) OpenToFrees();
  FreeLocked(hit_, allocation, self);
}

void Front::FreeLeft(std::span<Block* const> blocks) noexcept {
  // The block records are in the caches of the cores that freed them.
  constexpr std::size_t kAhead = 8;
  for (std::size_t i = 0; i < std::min(kAhead, blocks.size()); ++i) {
    __builtin_prefetch(blocks[i], 1);
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (i + kAhead < blocks.size()) __builtin_prefetch(blocks[i + kAhead], 1);
    hit_.counts.Uncount(*blocks[i]);
    hit_path_->Give(blocks[i]);
  }
}

void Front::EndWaiting() noexcept {
  const std::lock_guard<ChainLock> guard(hit_.lock);
  hit_.lock.Close();
}

[[gnu::noinline]] void Front::FreeSlowly(Allocation* allocation) noexcept {
  Block* const block = allocation->block();
  if (!MayHit() || !IsPlain(*block)) return WalkFree(allocation);
  retry_.CountThread();
  const std::size_t bytes = block->size;
  hit_.lock.lock();
  hit_.counts.Uncount(*block);
  if (hit_path_->Give(block)) return EndFree(bytes);
  hit_.counts.Recount(*block);
  hit_.lock.unlock();
  WalkFree(allocation);
}

}  // namespace strata
