#ifndef STRATA_STRATEGY_AUTO_GROWTH_POOLED_BLOCKS_H_
#define STRATA_STRATEGY_AUTO_GROWTH_POOLED_BLOCKS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "strata/allocation/chunks/memory_budget.h"
#include "strata/allocation/hit/chain_state.h"
#include "strata/strategy/auto_growth/auto_growth_policy.h"
#include "strata/strategy/blocks/block_list.h"
#include "strata/strategy/blocks/free_epochs.h"
#include "strata/strategy/blocks/free_index.h"
#include "strata/strategy/blocks/idle_chunks.h"
#include "strata/strategy/blocks/open_blocks.h"
#include "strata/strategy/blocks/record_stock.h"

namespace strata {

// The blocks of one AutoGrowthAllocator: search, split, coalesce. It knows no
// device and no other stream.
//
// Model: a free block is in the front cache or in the index of its pool.
//   JoinAll() empties the cache into the index. A chunk is idle if it is one
//   free block; it is then also in a list of idle chunks.
//   With address ranges as chunks, a free block beside a large hole is in the
//   list of open blocks instead of the index.
// Threads: the lock of the chain guards all functions and members, except
//   LockJoined(), which acquires it.
// Cost: a search that finds a block at once is O(1), without heap call.
class PooledBlocks {
 public:
  // Smallest rest that is split off. 512 bytes is the granularity of the
  // device's own allocations (cuda_semantics.md H2).
  static constexpr std::size_t kMinRemainderBytes = 512;

  PooledBlocks(const PooledBlocks&) = delete;
  PooledBlocks& operator=(const PooledBlocks&) = delete;

 protected:
  using Pool = AutoGrowthPolicy::Pool;

  // `state` and `budget` must outlive this object.
  PooledBlocks(ChainState& state, const MemoryBudget& budget,
               const AutoGrowthPolicy& policy);
  ~PooledBlocks() = default;

  // Acquires the lock and puts every free block into the index, for operations
  // other than the requests and frees of users.
  [[nodiscard]] std::unique_lock<ChainLock> LockJoined() const {
    std::unique_lock<ChainLock> lock(lock_);
    JoinAll();
    return lock;
  }
  // Const, because callers do not see whether a free block is in the cache or
  // in the index.
  void JoinAll() const noexcept {
    const_cast<PooledBlocks&>(*this).Join(cache_.TakeAll());
  }

  // ---- Blocks that become live. Null if no block fits, or if records ran out.

  // Searches the pool of `size`, and flushes the cache if that is needed.
  Block* Find(std::size_t size) noexcept {
    return has_ranges_ ? FindInRanges(size) : FindInChunks(size);
  }
  Block* FindAndCarve(Pool pool, std::size_t size) noexcept;
  // The last resort before a failure: searches the other pools, splits any idle
  // chunk, and searches past the first blocks of a class. O(blocks of the
  // request's class).
  Block* FindAmongAll(Pool own, std::size_t size) noexcept;
  // Splits `size` bytes from a free block in the index.
  Block* Carve(Block* block, std::size_t size) noexcept;
  // Adds a chunk of `owner` to the lists and carves the request from it.
  Block* Publish(ChunkHolder& owner, Pool pool, Chunk* chunk,
                 std::size_t size) noexcept;

  // ---- Blocks that become free.

  // Frees a block as of `epoch` and coalesces it with its neighbours. The stock
  // may then exceed its limit.
  void Insert(Block* block, FreeEpochs::Epoch epoch) noexcept;
  // Frees a block of a range that no user freed.
  void InsertFree(Block* block, FreeEpochs::Epoch epoch) noexcept;

  // ---- Idle chunks.

  // Removes an idle chunk from all lists. Null for null.
  Chunk* Detach(Chunk* chunk) noexcept;
  // Idle chunks of at least `least` bytes, the largest first, until their sum
  // is `bytes`; linked by `next`.
  Chunk* DetachLargest(std::size_t bytes, std::size_t least) noexcept;

  // ---- Free blocks of address ranges. Block::pool of a free block is the
  // number of its list: the index of a pool or, above kPools, its open blocks.

  static constexpr unsigned kPools = AutoGrowthPolicy::kPoolCount;
  static bool IsInOpenBlocks(const Block& block) {
    return block.pool >= kPools;
  }
  // The list of a free block depends on its neighbours.
  void AddFree(Block* block) noexcept;
  void RemoveFree(Block* block) noexcept;
  // Lists `block` again, after its neighbour became a hole or ceased to be one.
  // `block` may be null or in use.
  void Refresh(Block* block) noexcept {
    if (!BlockList::IsFree(block)) return;
    RemoveFree(block);
    AddFree(block);
  }

  // ---- Numbers.

  Pool PoolOf(const Request& request, std::size_t size) const {
    return (request.flags & kLongLived) != 0 && policy_.keeps_apart()
               ? Pool::kLongLived
               : policy_.PoolOf(size);
  }
  FreeIndex& index(Pool pool) { return index_[static_cast<std::size_t>(pool)]; }
  FreeIndex& index(const Block& block) { return index_[block.pool]; }
  // Free bytes in chunks that are in use.
  std::size_t unused_bytes() const {
    return blocks_.chunk_bytes() - taken_bytes_ - idle_.bytes() -
           idle_loans_.bytes();
  }
  std::size_t free_blocks() const {
    return blocks_.block_count() - blocks_.unusable_count() - (takes_ - gives_);
  }
  // Frees by users, without the blocks that are in the cache now. Cost:
  // FrontCache::hits.
  std::uint64_t free_count() const {
    return gives_ - taken_back_ + cache_.hits();
  }
  // The largest free block, to the accuracy of its class.
  std::size_t LargestFree() const noexcept;
  // Whether an idle chunk may be split for `size`.
  bool MayCut(const Block& chunk, std::size_t size) const;
  // Whether a free block may serve `size`.
  bool MayServe(const Block& block, std::size_t size) const {
    return !BlockList::IsWholeChunk(&block) || MayCut(block, size);
  }
  // Call it after the bytes of the chunks have changed.
  void LimitCache() noexcept {
    cache_.set_limit_bytes(
        policy_.front_cache().LimitBytes(blocks_.chunk_bytes()));
  }
  // For tests; O(blocks).
  bool AreConsistent() const;

  const AutoGrowthPolicy policy_;
  const MemoryBudget& budget_;
  ChainLock& lock_;
  BlockList blocks_;
  std::array<FreeIndex, kPools> index_;
  bool has_ranges_ = false;  // Constant after construction.
  std::array<OpenBlocks, kPools> open_;
  FrontCache& cache_;
  RecordStock records_{RecordSlab::Instance()};
  IdleChunks idle_;
  IdleChunks idle_loans_;  // Idle chunks that are loans of other streams.
  // Recalls of spare loans while any loan was idle; wraps.
  std::uint16_t recalls_ = 0;
  FreeEpochs epochs_;  // Epochs of free blocks: Block::offset_units.
  // Blocks that became live, and that became free again, without the cache.
  std::uint64_t takes_ = 0;
  std::uint64_t gives_ = 0;
  // Counted in takes_ but not found by a search (growth and loans), and counted
  // in gives_ but not freed by a user of this stream.
  std::uint64_t untold_takes_ = 0;
  std::uint64_t taken_back_ = 0;
  std::size_t taken_bytes_ = 0;  // Bytes outside the index.
  std::uint64_t misses_ = 0;     // Requests that had to grow.

 private:
  // Puts cached blocks, linked by free_next, into the index.
  void Join(Block* cached) noexcept;
  IdleChunks& IdleListOf(const Chunk* chunk) {
    return chunk->is_loan ? idle_loans_ : idle_;
  }
  void UseIdle(Chunk* chunk) {
    IdleListOf(chunk).Remove(chunk);
    chunk->recalls_before_use = recalls_;
  }
  // Bytes to take of a free block for a block of `size`.
  std::size_t BytesToTake(const Block& block, std::size_t size) const {
    return policy_.StaysWhole(block.size) && BlockList::IsWholeChunk(&block)
               ? block.size
               : size;
  }

  // Inline for the search that finds a block at once; FindSlowly does the rest.
  template <bool kInRanges>
  Block* FindIn(std::size_t size) noexcept;
  Block* FindInChunks(std::size_t size) noexcept;
  Block* FindInRanges(std::size_t size) noexcept;
  Block* FindSlowly(std::size_t size) noexcept;
  // At least one record is in stock.
  Block* TakeBestFit(Pool pool, std::size_t size) noexcept;
  // As TakeBestFit, where chunks are ranges. Also null if the best fit is an
  // idle chunk; then FindSlowly decides.
  Block* TakeInRanges(Pool pool, std::size_t size) noexcept;
  // Splits `size` bytes from an open block. The rest stays in its list, next to
  // the large hole. At least one record is in stock.
  Block* CutOpen(Block* block, std::size_t size) noexcept;
  // Counts a block that has left its list as in use.
  Block* MakeLive(Block* block) noexcept;
  // Splits `size` bytes from a block that has left its index `blocks`. At least
  // one record is in stock.
  template <bool kInRanges>
  Block* Cut(FreeIndex& blocks, Block* block, std::size_t size) noexcept;
  // Coalesces `block` with its free neighbours and lists the result. For Insert
  // and InsertFree.
  template <bool kInRanges>
  void Place(Block* block, FreeEpochs::Epoch epoch) noexcept;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_AUTO_GROWTH_POOLED_BLOCKS_H_
