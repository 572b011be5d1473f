#ifndef STRATA_STRATEGY_AUTO_GROWTH_ALLOCATOR_H_
#define STRATA_STRATEGY_AUTO_GROWTH_ALLOCATOR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "strata/allocation/hit_path.h"
#include "strata/strategy/auto_growth_policy.h"
#include "strata/strategy/block_list.h"
#include "strata/strategy/free_index.h"
#include "strata/strategy/idle_chunks.h"
#include "strata/strategy/pooling_strategy.h"
#include "strata/strategy/record_stock.h"

namespace strata {

// Best fit over chunks that are taken as needed, coalesce inside, and go back
// when idle.
//
// Model: sizes are rounded up to the policy's granule, 256 bytes. The smallest
//   free block that fits, lowest address among equals, is cut: the user gets
//   its high end, the rest stays free unless it is below 512 bytes. On a miss
//   the strategy grows by a chunk of the size AutoGrowthPolicy gives; if the
//   system refuses, by less, down to what the request needs; then it looks in
//   the other pool. A freed block joins its free neighbours in the chunk. A
//   chunk whose last block is freed is idle: kept for the next request, and
//   given back as PoolingStrategy says, and before growth as the policy says.
// Threads: any thread.
// Cost: a hit is O(1) under one spin lock, without heap or device call.
// Source: paddle.md §3.3 (rules 1 to 11), without its faults: §5 A1 (Release
//   without lock), B5 (driver calls under the lock), B16 (no back-off to the
//   exact size, slivers of 256 bytes).
class AutoGrowthAllocator final : public PoolingStrategy, private HitPath {
 public:
  // Blocks smaller than this are not split off: 512 bytes is the granularity of
  // the device's own allocations (cuda_semantics.md H2).
  static constexpr std::size_t kMinRemainderBytes = 512;

  AutoGrowthAllocator(std::shared_ptr<ChunkPool> pool,
                      std::shared_ptr<ChainStream> stream,
                      const AutoGrowthPolicy& policy);
  ~AutoGrowthAllocator() override;

  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override;
  void DoFree(Allocation* allocation) noexcept override;

  const char* name() const override { return "auto_growth"; }
  std::size_t max_alignment() const override {
    return FreeIndex::kGranuleBytes;
  }
  std::size_t natural_alignment() const override {
    return FreeIndex::kGranuleBytes;
  }
  Stats stats() const override;
  void Accept(AllocatorVisitor& visitor) const override;
  HitPath* hit_path() override;

  // Whether lists, indices and counters agree. For tests; O(blocks).
  bool IsConsistent() const;

 private:
  using Pool = AutoGrowthPolicy::Pool;

  // HitPath.
  SpinLock& hit_lock() override { return lock_; }
  Block* TakeCached(std::size_t bytes) noexcept override;
  void GiveCached(Block* block) noexcept override;

  // ChunkHolder.
  std::size_t IdleBytes() const noexcept override;
  std::size_t IdleSystemBytes() const noexcept override;
  std::size_t SmallestIdle(std::size_t bytes) const noexcept override;
  std::size_t LargestIdle() const noexcept override;
  std::size_t GiveBack(std::size_t bytes) noexcept override;
  std::size_t OfferIdle(std::size_t bytes) noexcept override;
  std::size_t GiveBackAll() noexcept override;

  FreeIndex& index(Pool pool) { return index_[static_cast<std::size_t>(pool)]; }
  // Cuts `size` bytes from a free, indexed block; null if records ran out.
  Block* Carve(Block* block, std::size_t size) noexcept;
  Block* FindAndCarve(Pool pool, std::size_t size, bool exact) noexcept;
  // The last resort: splits what kLongLived would keep whole, and takes from
  // the other pool; both are better than no memory.
  Block* FindAnywhere(std::size_t size) noexcept;
  Allocation* Grow(const Request& request, std::size_t size,
                   Failure& failure) noexcept;
  // Adds the chunk to the lists and carves the request from it.
  Block* Publish(Chunk* chunk, std::size_t size) noexcept;
  // Takes an idle chunk out of all lists, and returns it. Null for null.
  Chunk* Detach(Chunk* chunk) noexcept;
  // The same for the smallest of at least `bytes`; null if there is none. Takes
  // the lock.
  Chunk* DetachSmallest(std::size_t bytes) noexcept;
  // Gives detached chunks, linked by `next`, to the system, after the work that
  // used them.
  std::size_t ReturnToSystem(Chunk* chunks) noexcept;

  const AutoGrowthPolicy policy_;

  mutable SpinLock lock_;
  // All below guarded by lock_.
  BlockList blocks_;
  std::array<FreeIndex, AutoGrowthPolicy::kPoolCount> index_;
  RecordStock records_{RecordSlab::Instance()};
  IdleChunks idle_;
  std::array<bool, AutoGrowthPolicy::kPoolCount> has_grown_{};
  Stats stats_;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_AUTO_GROWTH_ALLOCATOR_H_
