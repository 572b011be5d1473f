#ifndef STRATA_ALLOCATION_HIT_HIT_PATH_H_
#define STRATA_ALLOCATION_HIT_HIT_PATH_H_

#include <cstddef>
#include <memory>

#include "strata/allocation/allocation.h"
#include "strata/allocation/hit/chain_lock.h"
#include "strata/allocation/hit/front_cache.h"
#include "strata/allocation/hit/hit_state.h"
#include "strata/allocation/hit/lent_lock.h"

namespace strata {

// The short path past the layers: the front of a chain allocates a cached block
// from the strategy, and frees it, without a walk through the layers.
//
// Model: a layer that must see every call has no hit path, and hides the hit
//   path of the layers below it. A call that cannot be served here is declined
//   and walks the layers. The front cache holds only whole blocks that users of
//   this chain freed. So the chain that allocates one again knows its location.
// Threads: hold shared_lock() around Take() and Give(). If it is null, hold
//   hit_lock() unless that is null too. Both are equivalent for a strategy that
//   serves a single chain, because such a strategy is never lent.
// Cost: no heap call, no device call.
class HitPath {
 public:
  // Take() and Give() lock by themselves.
  HitPath() = default;
  // Creates a hit state with a lock and a front cache. A thread may own the
  // lock if `may_bias`. Take() searches the front cache first. `cache` is as
  // for HitState.
  //
  // Errors: std::bad_alloc.
  template <class... Cache>
  explicit HitPath(bool may_bias, Cache... cache)
      : owned_(std::make_unique<HitState>(may_bias, cache...)),
        state_(owned_.get()) {}
  HitPath(const HitPath&) = delete;
  HitPath& operator=(const HitPath&) = delete;
  virtual ~HitPath() = default;

  // The hit state; null if Take() and Give() lock by themselves. Never changes.
  HitState* hit_state() const { return state_; }
  // The lock of hit_state(), or null.
  ChainLock* hit_lock() const {
    return state_ != nullptr ? &state_->lock : nullptr;
  }
  // Lock of a strategy that several streams share: its hit_lock(), or the lock
  // of the chain it is lent to. Null for other strategies.
  virtual LentLock* shared_lock() noexcept { return nullptr; }
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
  // True if Give() never returns false.
  virtual bool takes_all() const noexcept { return false; }
  // True if Take() finds every block that a walk without growth would find.
  virtual bool finds_all() const noexcept { return true; }

  // The parts of Take() and Give() behind the front cache, for callers that
  // search the front cache themselves.
  virtual Block* TakeCached(std::size_t bytes) noexcept = 0;
  virtual bool GiveCached(Block* block) noexcept = 0;

 private:
  const std::unique_ptr<HitState> owned_;
  HitState* const state_ = nullptr;
};

// The hit path of a strategy that several streams share. Its lock can be lent.
class SharedHitPath : public HitPath {
 public:
  // Errors: std::bad_alloc.
  SharedHitPath() : HitPath(/*may_bias=*/false) {}

  LentLock* shared_lock() noexcept final { return &lock_; }

 private:
  LentLock lock_{hit_state()->lock};
};

// Holds the lock of a hit path, if there is one.
class HitGuard {
 public:
  explicit HitGuard(HitPath& path)
      : shared_(path.shared_lock()),
        lock_(shared_ == nullptr ? path.hit_lock() : nullptr) {
    if (shared_ != nullptr) shared_->lock();
    if (lock_ != nullptr) lock_->lock();
  }
  HitGuard(const HitGuard&) = delete;
  HitGuard& operator=(const HitGuard&) = delete;
  ~HitGuard() {
    if (lock_ != nullptr) lock_->unlock();
    if (shared_ != nullptr) shared_->unlock();
  }

 private:
  LentLock* const shared_;
  ChainLock* const lock_;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_HIT_HIT_PATH_H_
