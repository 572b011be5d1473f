#ifndef STRATA_ALLOCATION_HIT_PATH_H_
#define STRATA_ALLOCATION_HIT_PATH_H_

#include <cstddef>
#include <optional>

#include "strata/allocation/allocation.h"
#include "strata/allocation/chain_lock.h"
#include "strata/allocation/front_cache.h"
#include "strata/allocation/hit_state.h"
#include "strata/allocation/lent_lock.h"

namespace strata {

// The short way past the layers: how the front of a chain takes a cached block
// from a strategy and gives it back without a walk.
//
// Model: a layer that must see every call has no hit path, and hides that of
//   the layers below it. What cannot be served this way is declined, and walks.
//   A strategy puts into the front cache what users of its chain freed, whole,
//   and nothing else: who hands it out again knows where it is.
// Threads: hold shared_lock() around Take and Give, if there is one, or else
//   hit_lock(), if there is one. Of a strategy that is nobody's but one
//   chain's, and so never lent, both are the same.
// Cost: no heap call, no device call.
class HitPath {
 public:
  // Take and Give lock by themselves.
  HitPath() = default;
  // With a lock, which a thread may own if `may_bias`, and a front cache, where
  // Take looks first: `cache` is as for HitState::Begin.
  //
  // Errors: std::bad_alloc.
  template <class... Cache>
  explicit HitPath(bool may_bias, Cache... cache)
      : owned_(std::in_place, may_bias, cache...), state_(&**owned_) {}
  HitPath(const HitPath&) = delete;
  HitPath& operator=(const HitPath&) = delete;
  virtual ~HitPath() = default;

  // Null: Take and Give lock by themselves. Always the same one.
  HitState* hit_state() const { return state_; }
  // That of hit_state(), or null.
  ChainLock* hit_lock() const {
    return state_ != nullptr ? &state_->lock : nullptr;
  }
  // Of a strategy that streams share: its hit_lock(), or what that is lent to.
  virtual LentLock* shared_lock() noexcept { return nullptr; }
  // A live block of at least `bytes` (not 0), aligned as the layer aligns by
  // itself; null if none is cached.
  Block* Take(std::size_t bytes) noexcept {
    Block* block = state_ != nullptr ? state_->cache.Take(bytes) : nullptr;
    return block != nullptr ? block : TakeCached(bytes);
  }
  // Takes back a live block without mark or offset. False, and nothing is done,
  // if this free has to walk; never for what Take gave under the same lock.
  bool Give(Block* block) noexcept {
    return (state_ != nullptr && state_->cache.Give(block)) ||
           GiveCached(block);
  }
  // Whether Give never declines.
  virtual bool takes_all() const noexcept { return false; }
  // Whether Take finds whatever a walk would find without growing.
  virtual bool finds_all() const noexcept { return true; }

  // For who asks the front cache by itself: what Take and Give do then.
  virtual Block* TakeCached(std::size_t bytes) noexcept = 0;
  virtual bool GiveCached(Block* block) noexcept = 0;

 private:
  std::optional<LastingHitState> owned_;
  HitState* const state_ = nullptr;
};

// That of a strategy that streams share, with a lock that can be lent.
class SharedHitPath : public HitPath {
 public:
  // Errors: std::bad_alloc.
  SharedHitPath() : HitPath(/*may_bias=*/false) {}

  LentLock* shared_lock() noexcept final { return &lock_; }

 private:
  LentLock lock_{hit_state()->lock};
};

// Holds the lock of a hit path, if it has one.
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

#endif  // STRATA_ALLOCATION_HIT_PATH_H_
