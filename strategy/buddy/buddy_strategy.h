#ifndef STRATA_STRATEGY_BUDDY_BUDDY_STRATEGY_H_
#define STRATA_STRATEGY_BUDDY_BUDDY_STRATEGY_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "strata/platform/locks/spin_lock.h"
#include "strata/strategy/blocks/exact_index.h"
#include "strata/strategy/buddy/buddy_pool.h"
#include "strata/strategy/buddy/buddy_source.h"
#include "strata/strategy/pooling_strategy.h"
#include "strata/strategy/strategy_options.h"

namespace strata {

// Base of the strategies over BuddyPool objects: rounding, huge blocks, idle
// chunks of all pools, statistics. A subclass selects the pool for a call.
//
// Model: a request of more than BuddySource::max_block_bytes() is a huge block.
//   The system allocates it; it is counted, and freed to the system when it is
//   freed. If its work cannot be waited for, because a stream captures, a later
//   call that finds the work done frees it. When the system has no memory for a
//   huge block or for growth, a fitting block of any pool serves.
// Threads: any thread.
// Source: paddle.md §3.4 rules 1, 2, 8 and 10.
class BuddyStrategy : public PoolingStrategy {
 public:
  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept final;
  void DoFree(Allocation* allocation) noexcept final;

  const char* name() const final { return source_.layer(); }
  std::size_t max_alignment() const final { return kAlignmentBytes; }
  std::size_t natural_alignment() const final { return kAlignmentBytes; }
  Stats stats() const final;

  // Number of live huge blocks.
  std::size_t huge_count() const;
  std::size_t pool_count() const;
  // Whether every pool is consistent. For tests; O(blocks).
  bool IsConsistent() const;

 protected:
  BuddyStrategy(const char* name, std::shared_ptr<ChunkPool> pool,
                std::shared_ptr<ChainStream> stream,
                const StrategyOptions& options);
  ~BuddyStrategy() override;

  // The pool for requests of the calling thread; null if the host is out of
  // memory.
  virtual BuddyPool* PoolForRequest() noexcept = 0;
  // Returns `block` to its pool.
  virtual void GiveToPool(BuddyPool& home, Block* block) noexcept = 0;

  // Adds a pool that lives as long as this object. Returns null if the host is
  // out of memory.
  BuddyPool* AddPool() noexcept;
  // Size of the block for a request of `bytes`; 0: no pool serves it.
  std::size_t SizeInPool(std::size_t bytes) const noexcept;
  // The pool of a live block; null for a huge block, which belongs to the
  // system.
  static BuddyPool* HomeOf(const Block& block) noexcept {
    return block.chunk != nullptr ? static_cast<BuddyChunk*>(block.chunk)->home
                                  : nullptr;
  }
  // The pool added last; the others follow `next`.
  BuddyPool* first_pool() const { return pools_.load(); }

 private:
  static constexpr std::size_t kAlignmentBytes = 256;

  struct HugeBlocks {
    void Add(Block* block);
    void Remove(Block* block);

    BlockQueue blocks;
    std::size_t count = 0;
    std::size_t bytes = 0;
  };

  // ChunkHolder, over all pools.
  void AppendBlocks(std::vector<BlockInfo>& blocks) const final;
  IdleInfo Idle(std::size_t fit_bytes) const noexcept final;
  std::size_t GiveBackBestFit(std::size_t bytes) noexcept final;
  std::size_t OfferIdle(std::size_t bytes) noexcept final;
  std::size_t GiveBackDone(std::size_t bytes,
                           std::size_t least_bytes) noexcept final;
  std::size_t GiveBackAll() noexcept final;

  Allocation* DetachIdle(std::size_t bytes) noexcept;
  Allocation* TakeHuge(const Request& request, std::size_t size,
                       Failure& failure) noexcept;
  void GiveHuge(Block* block) noexcept;
  // Frees huge blocks that GiveHuge left, if their work is done or can be
  // waited for, to the system. Returns the bytes.
  std::size_t GiveLeftHuge(bool may_wait) noexcept;
  HugeBlocks TakeLeftHuge() noexcept;  // Hold huge_lock_.
  // `is_done`: whether the work that used the blocks is done. Return the freed
  // bytes.
  std::size_t GiveOrLeave(HugeBlocks& leaving, bool is_done) noexcept;
  std::size_t GiveToSystem(HugeBlocks& leaving) noexcept;
  // The last resort: a fitting block of any pool.
  Allocation* TakeAnywhere(const Request& request, std::size_t size) noexcept;
  void TakeInAll() const noexcept;

  mutable BuddySource source_;
  std::atomic<BuddyPool*> pools_{nullptr};  // Only grows.

  mutable SpinLock huge_lock_;
  HugeBlocks huge_;  // Live; guarded by huge_lock_.
  // Freed, but streams may still use them; guarded by huge_lock_.
  HugeBlocks left_huge_;
  // Whether left_huge_ has blocks; written with huge_lock_ held.
  std::atomic<bool> has_left_huge_{false};
};

}  // namespace strata

#endif  // STRATA_STRATEGY_BUDDY_BUDDY_STRATEGY_H_
