#ifndef STRATA_STRATEGY_THREAD_LOCAL_THREAD_LOCAL_ALLOCATOR_H_
#define STRATA_STRATEGY_THREAD_LOCAL_THREAD_LOCAL_ALLOCATOR_H_

#include <cstddef>
#include <memory>

#include "strata/allocation/chunks/chunk_pool.h"
#include "strata/allocation/hit/hit_path.h"
#include "strata/allocation/streams/chain_stream.h"
#include "strata/strategy/buddy/buddy_strategy.h"
#include "strata/strategy/strategy_options.h"
#include "strata/strategy/thread_local/pool_owners.h"

namespace strata {

// A pool like that of naive_best_fit for every thread.
//
// Model: a thread allocates from its own pool. A block is freed to the pool
//   that it came from. If another thread frees it, it goes to a lock-free list
//   that the owner drains at its next request. The pool of an exited thread
//   stays with its blocks and chunks, and the next new thread adopts it. When
//   the system has no more memory, any pool with room serves a request. Release
//   and exhaustion reach the pools of all threads; Release of the original
//   reaches only the caller's pool.
// Errors: as naive_best_fit.
// Threads: any thread. Threads, blocks and this object may end in any order, if
//   the blocks end before this object.
// Cost: as naive_best_fit, with a lock that only its owner acquires on a hit. A
//   free by another thread is one atomic exchange. Every thread allocates
//   chunks of its own, and 67 KiB of index for each kind of chunk.
// Source: paddle.md §3.4 rule 11.
class ThreadLocalAllocator final : public BuddyStrategy, private HitPath {
 public:
  // Makes no device call.
  //
  // Errors: std::invalid_argument that names the invalid option.
  ThreadLocalAllocator(std::shared_ptr<ChunkPool> pool,
                       std::shared_ptr<ChainStream> stream,
                       const StrategyOptions& options);
  ~ThreadLocalAllocator() override;

  HitPath* hit_path() override { return this; }

 private:
  // HitPath. Each pool has its lock; huge blocks take the full path.
  Block* TakeCached(std::size_t bytes) noexcept override;
  bool GiveCached(Block* block) noexcept override;
  // Does not find blocks in the list of frees by other threads.
  bool finds_all() const noexcept override { return false; }

  BuddyPool* PoolForRequest() noexcept override;
  void GiveToPool(BuddyPool& home, Block* block) noexcept override;

  const std::shared_ptr<PoolOwners> owners_;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_THREAD_LOCAL_THREAD_LOCAL_ALLOCATOR_H_
