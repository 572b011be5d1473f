#ifndef STRATA_ALLOCATION_HIT_PATH_H_
#define STRATA_ALLOCATION_HIT_PATH_H_

#include <cstddef>

#include "strata/allocation/allocation.h"
#include "strata/platform/spin_lock.h"

namespace strata {

// The short way past the layers: how the front of a chain takes a cached block
// from a strategy and gives it back without a walk.
//
// Model: a layer that must see every call has no hit path, and hides that of
//   the layers below it.
// Threads: hold hit_lock() around Take and Give.
// Cost: no heap call, no device call, no other lock.
class HitPath {
 public:
  HitPath() = default;
  HitPath(const HitPath&) = delete;
  HitPath& operator=(const HitPath&) = delete;
  virtual ~HitPath() = default;

  virtual SpinLock& hit_lock() = 0;
  // A live block of at least `bytes` (not 0), aligned as the layer aligns by
  // itself; null if none is cached.
  virtual Block* TakeCached(std::size_t bytes) noexcept = 0;
  // Takes back a live block without mark or offset.
  virtual void GiveCached(Block* block) noexcept = 0;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_HIT_PATH_H_
