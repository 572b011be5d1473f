#ifndef STRATA_STRATEGY_THREAD_LOCAL_ALLOCATOR_H_
#define STRATA_STRATEGY_THREAD_LOCAL_ALLOCATOR_H_

#include <cstddef>
#include <memory>

#include "strata/allocation/chain_stream.h"
#include "strata/allocation/chunk_pool.h"
#include "strata/allocation/hit_path.h"
#include "strata/strategy/buddy/buddy_strategy.h"
#include "strata/strategy/buddy/pool_owners.h"
#include "strata/strategy/strategy_options.h"

namespace strata {

// A pool like that of naive_best_fit for every thread.
//
// Model: a thread allocates from its own pool. A block goes back to the pool it
//   came from; if another thread frees it, through a list without lock that the
//   owner takes in at its next request. The pool of a thread that has exited
//   keeps its blocks and chunks, and the next new thread adopts it. When the
//   system has no more, a request is served from whatever pool has room.
//   Release and exhaustion reach the pools of all threads, where the original's
//   Release stops at the caller's own.
// Errors: as naive_best_fit.
// Threads: any thread; threads, blocks and this object may end in any order as
//   long as the blocks end before it.
// Cost: as naive_best_fit, with a lock that only its owner takes on a hit; a
//   free by another thread is one atomic exchange. Every thread takes chunks of
//   its own from the device, 67 KiB of index for each kind of chunk.
// Source: paddle.md §3.4 rule 11.
class ThreadLocalAllocator final : public BuddyStrategy, private HitPath {
 public:
  // Makes no device call.
  //
  // Errors: std::invalid_argument naming the option that is wrong.
  ThreadLocalAllocator(std::shared_ptr<ChunkPool> pool,
                       std::shared_ptr<ChainStream> stream,
                       const StrategyOptions& options);
  ~ThreadLocalAllocator() override;

  HitPath* hit_path() override { return this; }

 private:
  // HitPath. Each pool has its lock; huge blocks walk.
  Block* TakeCached(std::size_t bytes) noexcept override;
  bool GiveCached(Block* block) noexcept override;
  // Not what waits to be taken in.
  bool finds_all() const noexcept override { return false; }

  BuddyPool* PoolForRequest() noexcept override;
  void GiveToPool(BuddyPool& home, Block* block) noexcept override;

  const std::shared_ptr<PoolOwners> owners_;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_THREAD_LOCAL_ALLOCATOR_H_
