#ifndef STRATA_STRATEGY_AUTO_GROWTH_AUTO_GROWTH_ALLOCATOR_H_
#define STRATA_STRATEGY_AUTO_GROWTH_AUTO_GROWTH_ALLOCATOR_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "strata/allocation/hit/hit_path.h"
#include "strata/strategy/auto_growth/auto_growth_policy.h"
#include "strata/strategy/auto_growth/lent_blocks.h"
#include "strata/strategy/blocks/free_index.h"
#include "strata/strategy/pooling_strategy.h"

namespace strata {

// Best fit over chunks that are allocated on demand, coalesce inside, and are
// freed when idle.
//
// Model: sizes are rounded up to the granule of the policy, 256 bytes.
//   Search: the smallest free block that fits, at the lowest address among
//   equals, is split. The user gets its high end; the rest stays free unless it
//   is below 512 bytes. A search skips idle chunks that the policy does not
//   allow to split.
//   Growth: a miss first borrows memory that other streams of the place do not
//   use: an idle chunk, or a free block. The block is a chunk here, and a block
//   in use at its lender until it is idle and returned (Loans::Borrow).
//   Otherwise the strategy allocates a chunk of the size that AutoGrowthPolicy
//   computes. If the system refuses, it tries, in this order: smaller chunks,
//   down to the size of the request; freeing the smallest idle chunk that
//   covers the request; the other pools, with any chunk split.
//   Free: a freed block coalesces with its free neighbours in the chunk. A
//   chunk is idle once its last block is freed. It stays for the next request,
//   and is freed as PoolingStrategy says, and before growth as the policy says.
//   Cache: freed blocks of sizes that recur stay whole in a FrontCache. It is
//   flushed before other code reads the free blocks, and before growth.
// Threads: any thread.
// Cost: a hit is O(1) under one spin lock, without heap or device call.
// Source: paddle.md §3.3 (rules 1 to 11), without its faults: §5 A1 (Release
//   without lock), B5 (driver calls under the lock), B16 (no back-off to the
//   exact size, slivers of 256 bytes).
class AutoGrowthAllocator : public PoolingStrategy,
                            private HitPath,
                            protected LentBlocks {
 public:
  AutoGrowthAllocator(std::shared_ptr<ChunkPool> pool,
                      std::shared_ptr<ChainStream> stream,
                      const AutoGrowthPolicy& policy)
      : AutoGrowthAllocator(std::move(pool), std::move(stream), policy,
                            /*is_complete=*/true) {}
  ~AutoGrowthAllocator() override;

  // Returns a strategy that also lends to other streams; lent blocks may
  // outlive it.
  static std::shared_ptr<AutoGrowthAllocator> MakeLender(
      std::shared_ptr<ChunkPool> pool, std::shared_ptr<ChainStream> stream,
      const AutoGrowthPolicy& policy);
  static std::shared_ptr<AutoGrowthAllocator> MakeLender(
      std::unique_ptr<AutoGrowthAllocator> strategy);

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
  HitPath* hit_path() override;

  // For tests; O(blocks).
  virtual bool IsConsistent() const;

 protected:
  // For a derived strategy. Its constructor calls AddHolder once it is
  // complete.
  AutoGrowthAllocator(std::shared_ptr<ChunkPool> pool,
                      std::shared_ptr<ChainStream> stream,
                      const AutoGrowthPolicy& policy, bool is_complete);

  // HitPath.
  Block* TakeCached(std::size_t bytes) noexcept override;
  bool GiveCached(Block* block) noexcept override;
  bool takes_all() const noexcept override { return true; }

  // ChunkHolder.
  IdleInfo Idle(std::size_t fit_bytes) const noexcept override;
  std::size_t GiveBackBestFit(std::size_t bytes) noexcept override;
  std::size_t OfferIdle(std::size_t bytes) noexcept override;
  std::size_t GiveBackDone(std::size_t bytes,
                           std::size_t least_bytes) noexcept override;
  std::size_t GiveBackAll() noexcept override;
  void StreamEnds(Stream stream) noexcept override;
  void AppendBlocks(std::vector<BlockInfo>& blocks) const override;
  std::size_t SmallestLendable(std::size_t bytes) const noexcept override;
  Allocation* Lend(const LoanRequest& request) noexcept override;
  void TakeBack(Allocation* loan) noexcept override;
  std::size_t ReturnLoans(LoanRecall which) noexcept override;
  bool EndLending(End end) noexcept override;
  bool IdleIsDone() noexcept override {
    return is_over_ || (may_ask_stream() && PoolingStrategy::IdleIsDone());
  }
  // True if calls of the device may name the stream. Without a timeline it is
  // the stream of a graph pool, which knows its own end.
  bool may_ask_stream() const {
    return has_stream_ || chain_stream().timeline() == nullptr;
  }
  // EndLending with the lock held.
  bool EndLendingLocked() noexcept;

  // Called once no chain allocates from `strategy` any more.
  static void Retire(AutoGrowthAllocator* strategy) noexcept;
  // Waits for the stream's work. After this call the stream may be destroyed
  // without an announcement.
  void LeaveStream() noexcept;

  // Maps memory for a block of `size`. False: the strategy allocates a chunk
  // instead. True: `block` is the result, or null with the reason in `failure`.
  virtual bool GrowByPages(Pool /*own*/, std::size_t /*size*/,
                           Block** /*block*/, Failure& /*failure*/) noexcept {
    return false;
  }

  Allocation* Grow(const Request& request, Pool own, std::size_t size,
                   Failure& failure) noexcept;
  Allocation* TakeFromSystem(Pool own, std::size_t size,
                             Failure& failure) noexcept;
  // The chunk sizes to try. Records the room of the place.
  AutoGrowthPolicy::Sizes PlanGrowth(Pool own, std::size_t size,
                                     bool is_first) noexcept;
  // A chunk of one of `sizes`, but of at most `most_bytes`; null if the system
  // refuses all of them.
  Allocation* TakeChunk(const AutoGrowthPolicy::Sizes& sizes,
                        std::size_t most_bytes, Failure& failure) noexcept;
  // Borrows memory for a new chunk from other streams. Null if there is none;
  // then `block` is set if a fitting block became free meanwhile.
  Allocation* BorrowFor(Pool own, std::size_t size, Block** block) noexcept;
  Allocation* Borrow(std::size_t size, LoanRequest::Effort effort,
                     HolderList::Asked asked) noexcept;
  // Makes all borrowers return the loans of this strategy, if there are any.
  // Chunks that only loans use become idle.
  void RecallLent(LoanRecall which) noexcept;
  // A block of the memory that recalled loans freed here; null if there is
  // none.
  Block* FindRecalled(std::size_t size, LoanRecall which) noexcept;
  // Then nothing is returned to the system.
  bool IsDuringCapture() const noexcept;
  // Whether this strategy serves a graph pool: its chunks live as long as its
  // graphs.
  bool IsOfGraphs() const noexcept {
    return chain_stream().device() != nullptr &&
           chain_stream().timeline() == nullptr;
  }
  // Acquires the lock. The smallest idle chunk of at least `bytes`, or null.
  Chunk* DetachSmallest(std::size_t bytes) noexcept;
  // Frees detached chunks, linked by `next`, to the system, after the work that
  // used them.
  std::size_t ReturnToSystem(Chunk* chunks) noexcept;
  // Waits for the work of the stream; for the device if the stream may be gone.
  // False, and logged, if that fails.
  bool AwaitStream() noexcept;
  Status SynchronizeStream() noexcept;
  // Frees detached chunks, linked by `next`, to the pool. The pool holds them
  // until the work that used them is done. Returns the bytes that it does not
  // hold.
  std::size_t FreeChunks(Chunk* chunks, bool is_done) noexcept;
  // Releases idle chunks to the system, the largest first, until their sum is
  // `bytes`.
  std::size_t GiveBackIdle(std::size_t bytes = SIZE_MAX) noexcept;
  // Frees all idle memory, as StreamEnds requires for the own stream.
  virtual void GiveUpIdle() noexcept;

  // Loans: auto_growth_loans.cc. Call these without the lock.
  template <class Predicate>
  Allocation* LendIf(std::size_t bytes, Predicate is_fit) noexcept;
  // Asks the stream for its progress if a fitting block waits for its work.
  bool Ask(std::size_t bytes) noexcept;
  // Asks the stream or, if enough frees came since the last event, records an
  // event and asks that.
  void LookAtStream() noexcept;
  Allocation* LendOrdered(const LoanRequest& request) noexcept;

  // Whether chain_stream() may be named in a call of the device. False after
  // LeaveStream.
  std::atomic<bool> has_stream_{true};
  // Whether all work of the stream is known to be done, or is waited for no
  // longer. No more will come.
  std::atomic<bool> is_over_{false};

  // Guarded by lock_.
  std::array<bool, AutoGrowthPolicy::kPoolCount> has_grown_{};
};

}  // namespace strata

#endif  // STRATA_STRATEGY_AUTO_GROWTH_AUTO_GROWTH_ALLOCATOR_H_
