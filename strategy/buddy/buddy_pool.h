#ifndef STRATA_STRATEGY_BUDDY_BUDDY_POOL_H_
#define STRATA_STRATEGY_BUDDY_BUDDY_POOL_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "strata/allocation/allocation.h"
#include "strata/allocation/chunks/chunk_holder.h"
#include "strata/allocation/failure.h"
#include "strata/allocation/hit/front_cache.h"
#include "strata/allocation/request.h"
#include "strata/allocation/stats.h"
#include "strata/allocation/visitor.h"
#include "strata/platform/locks/spin_lock.h"
#include "strata/strategy/blocks/block_list.h"
#include "strata/strategy/blocks/idle_chunks.h"
#include "strata/strategy/blocks/ordered_index.h"
#include "strata/strategy/blocks/record_stock.h"
#include "strata/strategy/buddy/buddy_source.h"

namespace strata {

class BuddyPool;

// A chunk with a link to its pool. Chunk::pool is its BuddyPool::Preference.
struct BuddyChunk : Chunk {
  BuddyPool* home = nullptr;
};

// Large chunks, split into blocks of any multiple of the smallest size.
//
// Model: blocks are not powers of two, despite the name of the original.
//   Search: blocks of chunks of the wanted size first, then blocks of fallback
//   chunks; within these the smallest that fits, then the lowest address. The
//   request gets the low end. The rest stays free, unless it is below the
//   smallest remainder; then the whole block is handed out, and counted.
//   Free: a freed block coalesces with its free neighbours, the higher one
//   first. Blocks of sizes that recur stay whole in a FrontCache. It is flushed
//   before other code reads the free blocks, and before growth.
//   Growth: on a miss the pool grows by a chunk of the size that BuddySource
//   computes.
//   Frees by other threads may wait in a lock-free list until a later call on
//   the pool drains it.
// Threads: any thread. No lock is held while the system is called.
// Cost: a hit is O(log n) in free blocks of nearly one size, under one lock,
//   without heap or device call; GiveLater is one atomic exchange.
// Source: paddle.md §3.4 rules 3 to 8, except for the cache; without the faults
//   of rule 6 (counting) and §5 B9 (released while in use): blocks are counted
//   with their size, and a chunk is freed when its one block is all of it.
class BuddyPool {
 public:
  // Which free blocks are used first.
  enum class Preference : std::uint32_t { kWanted, kFallback };
  static constexpr std::size_t kPreferences = 2;

  // `source` outlives the pool. Detach every chunk before destruction;
  // remaining chunks are leaked.
  //
  // Errors: std::bad_alloc.
  explicit BuddyPool(BuddySource& source);
  BuddyPool(const BuddyPool&) = delete;
  BuddyPool& operator=(const BuddyPool&) = delete;

  // `size`: the rounded request. Drains the list, searches, then grows unless
  // the request forbids it. On null nothing has changed.
  Allocation* TryAllocate(const Request& request, std::size_t size,
                          Failure& failure) noexcept;
  // A free block for a request of `bytes`; null if there is none, or if the
  // list is not empty.
  Block* TakeHit(std::size_t bytes, std::size_t size) noexcept;
  // The search alone; null if no block fits.
  Allocation* TryCached(const Request& request, std::size_t size) noexcept;

  // Frees a block of this pool. GiveLater puts it into the lock-free list, for
  // the next call that drains.
  void Give(Block* block) noexcept;
  void GiveLater(Block* block) noexcept;
  void TakeIn() noexcept;  // Drains that list.

  // Chunks without a live block, as ChunkHolder::Idle.
  ChunkHolder::IdleInfo Idle(std::size_t fit_bytes) const noexcept;
  // Removes the smallest idle chunk of at least `bytes` from the pool; the
  // caller owns its memory. Null if there is none.
  Allocation* DetachIdle(std::size_t bytes) noexcept;

  // in_use, reserved, chunks, idle, free, hits, misses, splits, coalesces.
  // Blocks in the list count as in use: call TakeIn first.
  Stats stats() const;
  void AppendBlocks(std::vector<BlockInfo>& blocks) const;

  // Whether lists, indices and counters agree. For tests; O(blocks).
  bool IsConsistent() const;

  // Links for the owner of the pools, which guards them.
  BuddyPool* next = nullptr;
  BuddyPool* next_spare = nullptr;
  // Chunk::lane of its chunks; set before the first one.
  std::uint8_t lane = 0;

 private:
  OrderedIndex& OrderOf(const Block* block) { return orders_[block->pool]; }
  // Acquires the lock and puts every free block into the index. Const, because
  // callers do not see whether a free block is in the cache or in the index.
  [[nodiscard]] std::unique_lock<SpinLock> LockJoined() const {
    std::unique_lock<SpinLock> lock(lock_);
    const_cast<BuddyPool*>(this)->JoinAll();
    return lock;
  }

  // Hold lock_, here and below. From the cache, or Find; counts the hit.
  Block* TakeOrFind(std::size_t size) noexcept;
  // Searches the index, and flushes the cache if that is needed.
  Block* Find(std::size_t size) noexcept;
  // Puts cached blocks, linked by free_next, into the index.
  void Join(Block* cached) noexcept;
  void JoinAll() noexcept { Join(cache_.TakeAll()); }
  void LimitCache() noexcept;
  Block* FindAndCarve(std::size_t size) noexcept;
  Block* Carve(Block* block, std::size_t size) noexcept;
  void Insert(Block* block) noexcept;
  void Publish(BuddyChunk* chunk, Preference preference) noexcept;

  Allocation* Grow(const Request& request, std::size_t size,
                   Failure& failure) noexcept;

  BuddySource& source_;
  // Freed blocks in the lock-free list, linked by Block::free_previous.
  std::atomic<Block*> waiting_{nullptr};

  mutable SpinLock lock_;
  // All below guarded by lock_.
  BlockList blocks_;
  std::array<OrderedIndex, kPreferences> orders_;
  FrontCache cache_;
  RecordStock records_{RecordSlab::Instance()};
  IdleChunks idle_;
  Stats stats_;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_BUDDY_BUDDY_POOL_H_
