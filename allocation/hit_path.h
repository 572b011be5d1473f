#ifndef STRATA_ALLOCATION_HIT_PATH_H_
#define STRATA_ALLOCATION_HIT_PATH_H_

#include <cstddef>

#include "strata/allocation/allocation.h"
#include "strata/allocation/chain_lock.h"
#include "strata/allocation/front_cache.h"

namespace strata {

// The short way past the layers: how the front of a chain takes a cached block
// from a strategy and gives it back without a walk.
//
// Model: a layer that must see every call has no hit path, and hides that of
//   the layers below it. What cannot be served this way is declined, and walks.
// Threads: hold hit_lock() around Take and Give, if there is one.
// Cost: no heap call, no device call. A strategy that streams share takes locks
//   of its own below that of the stream.
class HitPath {
 public:
  // `front_cache`: where Take looks first, under the same lock; it outlives
  // this.
  explicit HitPath(FrontCache& front_cache = FrontCache::None())
      : front_cache_(front_cache) {}
  HitPath(const HitPath&) = delete;
  HitPath& operator=(const HitPath&) = delete;
  virtual ~HitPath() = default;

  // Null: Take and Give lock by themselves. Always the same one.
  virtual ChainLock* hit_lock() = 0;
  // A live block of at least `bytes` (not 0), aligned as the layer aligns by
  // itself; null if none is cached.
  Block* Take(std::size_t bytes) noexcept {
    Block* block = front_cache_.Take(bytes);
    return block != nullptr ? block : TakeCached(bytes);
  }
  // Takes back a live block without mark or offset. False, and nothing is done,
  // if this free has to walk; never for what Take gave under the same lock.
  bool Give(Block* block) noexcept {
    return front_cache_.Give(block) || GiveCached(block);
  }
  // Whether Give never declines.
  virtual bool takes_all() const noexcept { return false; }
  // Whether Take finds whatever a walk would find without growing. Hold
  // hit_lock().
  virtual bool finds_all() const noexcept { return true; }

  // For who asks the cache by itself: Take and Give are these, one by one.
  FrontCache& front_cache() { return front_cache_; }
  virtual Block* TakeCached(std::size_t bytes) noexcept = 0;
  virtual bool GiveCached(Block* block) noexcept = 0;

 private:
  FrontCache& front_cache_;
};

// Holds the lock of a hit path, if it has one.
class HitGuard {
 public:
  explicit HitGuard(HitPath& path) : HitGuard(path.hit_lock()) {}
  explicit HitGuard(ChainLock* lock) : lock_(lock) {
    if (lock_ != nullptr) lock_->lock();
  }
  HitGuard(const HitGuard&) = delete;
  HitGuard& operator=(const HitGuard&) = delete;
  ~HitGuard() {
    if (lock_ != nullptr) lock_->unlock();
  }

 private:
  ChainLock* const lock_;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_HIT_PATH_H_
