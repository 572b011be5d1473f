#ifndef STRATA_ALLOCATION_HIT_HIT_PATH_H_
#define STRATA_ALLOCATION_HIT_HIT_PATH_H_

#include <cstddef>

#include "strata/allocation/allocation.h"
#include "strata/allocation/hit/chain_lock.h"
#include "strata/allocation/hit/chain_state.h"
#include "strata/allocation/hit/front_cache.h"

namespace strata {

// The short path past the layers: the front of a chain allocates a cached block
// from the strategy, and frees it, without a walk through the layers.
//
// Model: a layer that must see every call has no hit path, and hides the hit
//   path of the layers below it. A call that cannot be served here is declined
//   and walks the layers. The front cache holds only whole blocks that users of
//   this chain freed. So the chain that allocates one again knows its location.
// Threads: hold hit_lock() around Take() and Give(). If it is null, they lock
//   by themselves, as in a strategy that several streams share.
// Cost: no heap call, no device call.
class HitPath {
 public:
  // Take() and Give() lock by themselves.
  HitPath() = default;
  // The lock of `state` guards Take() and Give(), and Take() searches its front
  // cache first. `state` must outlive this object.
  explicit HitPath(ChainState& state) : state_(&state) {}
  HitPath(const HitPath&) = delete;
  HitPath& operator=(const HitPath&) = delete;
  virtual ~HitPath() = default;

  // The lock to hold; null if Take() and Give() lock by themselves.
  ChainLock* hit_lock() const {
    return state_ != nullptr ? &state_->lock : nullptr;
  }
  // Returns a live block of at least `bytes` (not 0), with the natural
  // alignment of the layer. Returns null if no such block is cached.
  Block* Take(std::size_t bytes) noexcept {
    Block* block = state_ != nullptr ? state_->cache.Take(bytes) : nullptr;
    return block != nullptr ? block : TakeCached(bytes);
  }
  // Frees a live block without mark or offset. Returns false, and does nothing,
  // if this free must walk the layers. Never returns false for a block that
  // Take() returned under the same hold of the lock.
  bool Give(Block* block) noexcept {
    return (state_ != nullptr && state_->cache.Give(block)) ||
           GiveCached(block);
  }
  // Undoes Take(), for callers that cannot use the block. The caller may have
  // released the lock meanwhile, if there is one.
  virtual void PutBack(Block* block) noexcept { Give(block); }
  // True if Give() never returns false.
  virtual bool takes_all() const noexcept { return false; }
  // True if Take() finds every block that a walk without growth would find.
  virtual bool finds_all() const noexcept { return true; }

  // The parts of Take() and Give() behind the front cache, for callers that
  // search the front cache themselves.
  virtual Block* TakeCached(std::size_t bytes) noexcept = 0;
  virtual bool GiveCached(Block* block) noexcept = 0;

 private:
  ChainState* const state_ = nullptr;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_HIT_HIT_PATH_H_
