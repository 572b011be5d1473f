#ifndef STRATA_STRATEGY_BUDDY_BUDDY_POOL_H_
#define STRATA_STRATEGY_BUDDY_BUDDY_POOL_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "strata/allocation/allocation.h"
#include "strata/allocation/chunk_holder.h"
#include "strata/allocation/failure.h"
#include "strata/allocation/front_cache.h"
#include "strata/allocation/lent_lock.h"
#include "strata/allocation/request.h"
#include "strata/allocation/stats.h"
#include "strata/allocation/visitor.h"
#include "strata/platform/spin_lock.h"
#include "strata/strategy/block_list.h"
#include "strata/strategy/buddy/buddy_source.h"
#include "strata/strategy/idle_chunks.h"
#include "strata/strategy/ordered_index.h"
#include "strata/strategy/record_stock.h"

namespace strata {

class BuddyPool;

// A chunk that knows its pool. Chunk::pool is its BuddyPool::Preference.
struct BuddyChunk : Chunk {
  BuddyPool* home = nullptr;
};

// Large chunks, cut into blocks of any multiple of the smallest size.
//
// Model: not powers of two, in spite of the name of the original. Of the blocks
//   that fit, those of chunks of the wanted size come before those of fallback
//   chunks, then the smallest, then the lowest address. The request gets the
//   low end; the rest stays free unless it is below the smallest remainder:
//   then the whole block is handed out, and counted. A freed block joins its
//   free neighbours, the higher one first; but blocks of sizes that come again
//   stay whole in a FrontCache, which is emptied before anybody looks at what
//   else is free, or the pool grows. On a miss the pool grows by a chunk
//   of the size BuddySource says. What another thread frees may wait in a list
//   without lock until somebody with business in the pool takes it in.
// Threads: any thread. No lock is held while the system is called.
// Cost: a hit is O(log n) in free blocks of nearly one size, under one lock,
//   without heap or device call; GiveLater is one atomic exchange.
// Source: paddle.md §3.4 rules 3 to 8, but for what the cache keeps; the faults
// of rule 6 (counting) and §5
//   B9 (released while in use) are not here: blocks are counted as they are,
//   and a chunk goes when its one block is the whole of it.
class BuddyPool {
 public:
  // Which free blocks are taken first.
  enum class Preference : std::uint32_t { kWanted, kFallback };
  static constexpr std::size_t kPreferences = 2;

  // `source` and `lock`, which guards it, outlive the pool; null: it has one of
  // its own. Every chunk has been detached when it is destroyed; what is left
  // is lost.
  //
  // Errors: std::bad_alloc.
  explicit BuddyPool(BuddySource& source, LentLock* lock = nullptr);
  BuddyPool(const BuddyPool&) = delete;
  BuddyPool& operator=(const BuddyPool&) = delete;

  // `size`: the rounded request. Takes in what waits, then searches, then grows
  // unless the request forbids it. On null nothing has changed.
  Allocation* TryAllocate(const Request& request, std::size_t size,
                          Failure& failure) noexcept;
  // What is at hand for a request of `bytes`; null if there is nothing, or
  // something waits to be taken in. Held: for who holds the lock.
  Block* TakeHit(std::size_t bytes, std::size_t size) noexcept;
  Block* TakeHitHeld(std::size_t bytes, std::size_t size) noexcept {
    if (waiting_.load(std::memory_order_relaxed) != nullptr) return nullptr;
    Block* const block = TakeOrFind(size);
    if (block != nullptr) block->requested = bytes;
    return block;
  }
  // The search alone; null if there is nothing.
  Allocation* TryCached(const Request& request, std::size_t size) noexcept;

  // Takes back a block of this pool: at once, or without lock for the next who
  // has business here.
  void Give(Block* block) noexcept;
  void GiveHeld(Block* block) noexcept {
    if (!cache_.Give(block)) Insert(block);
  }
  void GiveLater(Block* block) noexcept;
  // Takes in what waits.
  void TakeIn() noexcept;

  // Chunks without a live block, as ChunkHolder::Idle.
  IdleInfo Idle(std::size_t fit_bytes) const noexcept;
  // Takes the smallest of them of at least `bytes` out of the pool: its memory
  // is the caller's. Null if there is none.
  Allocation* DetachIdle(std::size_t bytes) noexcept;
  // The same for any one, without a search.
  Allocation* DetachAnyIdle() noexcept;

  // in_use, reserved, chunks, idle, free, hits, misses, splits, coalesces. What
  // waits counts as in use: call TakeIn first.
  Stats stats() const;
  void AppendBlocks(std::vector<BlockInfo>& blocks) const;

  // Whether lists, indices and counters agree. For tests; O(blocks).
  bool IsConsistent() const;

  // Links of whoever keeps pools, under its rules.
  BuddyPool* next = nullptr;
  BuddyPool* next_spare = nullptr;

 private:
  OrderedIndex& OrderOf(const Block* block) { return orders_[block->pool]; }
  // The one that it was given, or else its own.
  class Lock {
   public:
    explicit Lock(LentLock* given) : given_(given) {}
    void lock() { given_ != nullptr ? given_->lock() : own_.lock(); }
    void unlock() { given_ != nullptr ? given_->unlock() : own_.unlock(); }

   private:
    LentLock* const given_;
    SpinLock own_;
  };
  // Holds the lock, with every free block in the index.
  class Joined {
   public:
    explicit Joined(const BuddyPool& pool) : guard_(pool.lock_) {
      // Where free blocks are kept is no part of what others see of them.
      const_cast<BuddyPool&>(pool).JoinAll();
    }
    Joined(const Joined&) = delete;
    Joined& operator=(const Joined&) = delete;

   private:
    const std::lock_guard<Lock> guard_;
  };

  // Hold lock_.
  // From the cache, or Find; counts it.
  Block* TakeOrFind(std::size_t size) noexcept;
  // Past the cache, but if need be with what it keeps.
  Block* Find(std::size_t size) noexcept;
  // Blocks of the cache, linked by free_next, become free like others.
  void Join(Block* cached) noexcept;
  void JoinAll() noexcept { Join(cache_.TakeAll()); }
  // As the bytes of the chunks have changed.
  void LimitCache() noexcept;
  Block* FindAndCarve(std::size_t size) noexcept;
  Block* Carve(Block* block, std::size_t size) noexcept;
  void Insert(Block* block) noexcept;
  void Publish(BuddyChunk* chunk, Preference preference) noexcept;
  // Takes it out of all lists. Null for null.
  Chunk* Detach(Chunk* chunk) noexcept;

  Allocation* Grow(const Request& request, std::size_t size,
                   Failure& failure) noexcept;

  BuddySource& source_;
  // Freed and not yet taken in, linked by Block::free_previous.
  std::atomic<Block*> waiting_{nullptr};

  mutable Lock lock_;
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
