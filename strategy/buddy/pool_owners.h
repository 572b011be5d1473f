#ifndef STRATA_STRATEGY_BUDDY_POOL_OWNERS_H_
#define STRATA_STRATEGY_BUDDY_POOL_OWNERS_H_

#include <cstdint>
#include <memory>

#include "strata/platform/spin_lock.h"
#include "strata/strategy/buddy/buddy_pool.h"

namespace strata {

// Which thread owns which pool of one allocator.
//
// Model: a thread owns at most one pool of each allocator. When it exits, its
//   pool is spare: the next thread without a pool adopts it, with all that is
//   in it. Owning is a preference, not a right: whoever uses a pool takes its
//   lock, so a thread that is already past its end may use any.
// Threads: any thread; threads and the allocator may end in any order.
// Cost: Find is two thread-local loads for the last few allocators of a thread,
//   a search in its list otherwise.
// Lifetime: shared by the allocator, which calls Close before the pools go, and
//   by threads that are exiting.
class PoolOwners : public std::enable_shared_from_this<PoolOwners> {
 public:
  PoolOwners();

  // The calling thread's pool; null if it has none.
  BuddyPool* Find() const noexcept;
  // Makes `pool`, which nobody owns, the calling thread's. If that cannot be
  // noted, because the thread is exiting or the host out of memory, the pool is
  // spare.
  void Own(BuddyPool* pool) noexcept;
  // A pool that lost its thread; null if there is none.
  BuddyPool* TakeSpare() noexcept;

  // The pools are about to go: threads that exit from now on leave them alone.
  void Close() noexcept;

 private:
  class ThreadList;

  void AddSpare(BuddyPool* pool) noexcept;

  const std::uint64_t id_;  // never used again in this process
  SpinLock lock_;
  BuddyPool* spare_ = nullptr;  // linked by next_spare; guarded by lock_
  bool closed_ = false;         // guarded by lock_
};

}  // namespace strata

#endif  // STRATA_STRATEGY_BUDDY_POOL_OWNERS_H_
