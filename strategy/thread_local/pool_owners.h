#ifndef STRATA_STRATEGY_THREAD_LOCAL_POOL_OWNERS_H_
#define STRATA_STRATEGY_THREAD_LOCAL_POOL_OWNERS_H_

#include <cstdint>
#include <memory>

#include "strata/platform/locks/spin_lock.h"
#include "strata/strategy/buddy/buddy_pool.h"

namespace strata {

// Records which thread owns which pool of one allocator.
//
// Model: a thread owns at most one pool of each allocator. When the thread
//   exits, its pool becomes spare. The next thread without a pool adopts it,
//   with its blocks and chunks. Ownership is not exclusive: every user of a
//   pool acquires its lock, so an exiting thread may use any pool.
// Threads: any thread; threads and the allocator may end in any order.
// Cost: Find is two thread-local loads for the last few allocators of a thread,
//   else a search in the thread's list.
// Lifetime: shared by exiting threads and the allocator, which calls Close
//   before it destroys the pools.
class PoolOwners : public std::enable_shared_from_this<PoolOwners> {
 public:
  PoolOwners();

  // The calling thread's pool; null if it has none.
  BuddyPool* Find() const noexcept;
  // Makes the calling thread the owner of `pool`, which has no owner. If that
  // cannot be recorded, because the thread is exiting or the host is out of
  // memory, the pool becomes spare.
  void Own(BuddyPool* pool) noexcept;
  // A pool of an exited thread; null if there is none.
  BuddyPool* TakeSpare() noexcept;

  // Call before the pools are destroyed: threads that exit later do not touch
  // them.
  void Close() noexcept;

 private:
  class ThreadList;

  void AddSpare(BuddyPool* pool) noexcept;

  const std::uint64_t id_;  // Never reused in this process.
  SpinLock lock_;
  BuddyPool* spare_ = nullptr;  // linked by next_spare; guarded by lock_
  bool closed_ = false;         // guarded by lock_
};

}  // namespace strata

#endif  // STRATA_STRATEGY_THREAD_LOCAL_POOL_OWNERS_H_
