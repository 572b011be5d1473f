#ifndef STRATA_STRATEGY_AUTO_GROWTH_AUTO_GROWTH_ALLOCATOR_H_
#define STRATA_STRATEGY_AUTO_GROWTH_AUTO_GROWTH_ALLOCATOR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "strata/allocation/hit/front_cache.h"
#include "strata/allocation/hit/hit_path.h"
#include "strata/strategy/auto_growth/auto_growth_policy.h"
#include "strata/strategy/blocks/block_list.h"
#include "strata/strategy/blocks/free_epochs.h"
#include "strata/strategy/blocks/free_index.h"
#include "strata/strategy/blocks/idle_chunks.h"
#include "strata/strategy/blocks/open_blocks.h"
#include "strata/strategy/blocks/record_stock.h"
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
class AutoGrowthAllocator : public PoolingStrategy, private HitPath {
 public:
  // Smallest rest that is split off. 512 bytes is the granularity of the
  // device's own allocations (cuda_semantics.md H2).
  static constexpr std::size_t kMinRemainderBytes = 512;

  AutoGrowthAllocator(std::shared_ptr<ChunkPool> pool,
                      std::shared_ptr<ChainStream> stream,
                      const AutoGrowthPolicy& policy)
      : AutoGrowthAllocator(std::move(pool), std::move(stream), policy,
                            /*is_complete=*/true) {}
  ~AutoGrowthAllocator() override;

  // Returns a strategy that also lends to other streams; lent blocks may
  // outlive it. The second form takes one constructed with is_complete.
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
  // For a derived strategy: not complete until its constructor has called
  // AddHolder as the last step.
  AutoGrowthAllocator(std::shared_ptr<ChunkPool> pool,
                      std::shared_ptr<ChainStream> stream,
                      const AutoGrowthPolicy& policy, bool is_complete);

  // The first kSmallLoans requests of small blocks search for a loan before
  // they grow, and one more for each kFreesPerSmallLoan frees. Without a limit,
  // two streams that alternate would exchange the same small memory for ever.
  static constexpr std::uint64_t kSmallLoans = 64;
  static constexpr std::uint64_t kFreesPerSmallLoan = 16;
  using Pool = AutoGrowthPolicy::Pool;

  // HitPath.
  Block* TakeCached(std::size_t bytes) noexcept override;
  bool GiveCached(Block* block) noexcept override;
  bool takes_all() const noexcept override { return true; }

  // ChunkHolder.
  IdleInfo Idle(std::size_t fit_bytes) const noexcept override;
  std::size_t GiveBack(const GiveBackRequest& request) noexcept override;
  void StreamEnds(Stream stream) noexcept override;
  void AppendBlocks(std::vector<BlockInfo>& blocks) const override;
  std::size_t SmallestLendable(std::size_t bytes) const noexcept override;
  Allocation* Lend(const LoanRequest& request) noexcept override;
  void TakeBack(Allocation* loan) noexcept override;
  std::size_t ReturnLoans(LoanRecall which) noexcept override;
  bool EndLending() noexcept override;
  bool IdleIsDone() noexcept override {
    return is_over_ || PoolingStrategy::IdleIsDone();
  }

  bool has_lent() const { return loans_ != 0; }  // Hold lock_.
  // Called once no chain allocates from `strategy` any more.
  static void Retire(AutoGrowthAllocator* strategy) noexcept;
  // Waits for the stream's work. After this call the stream may be destroyed
  // without an announcement.
  void LeaveStream() noexcept;

  // Acquires the lock and puts every free block into the index, for operations
  // other than the requests and frees of users.
  [[nodiscard]] std::unique_lock<ChainLock> LockJoined() const {
    std::unique_lock<ChainLock> lock(lock_);
    JoinAll();
    return lock;
  }
  // Puts cached blocks, linked by free_next, into the index.
  void Join(Block* cached) noexcept;
  // Const, because callers do not see whether a free block is in the cache or
  // in the index.
  void JoinAll() const noexcept {
    const_cast<AutoGrowthAllocator&>(*this).Join(cache_.TakeAll());
  }
  void LimitCache() noexcept {
    cache_.set_limit_bytes(
        policy_.front_cache().LimitBytes(blocks_.chunk_bytes()));
  }
  // Searches the index, and flushes the cache if that is needed. Inline for the
  // search that finds a block at once; FindSlowly does the rest.
  template <bool kInRanges>
  Block* FindIn(std::size_t size) noexcept;
  Block* FindInRanges(std::size_t size) noexcept;
  Block* FindSlowly(std::size_t size) noexcept;

  // Frees by users, without the blocks that are in the cache now. Cost:
  // FrontCache::hits.
  std::uint64_t free_count() const {
    return gives_ - taken_back_ + cache_.hits();
  }

  // Hold LockJoined().
  Stats StatsLocked() const;
  std::size_t free_blocks() const {
    return blocks_.block_count() - blocks_.unusable_count() - (takes_ - gives_);
  }

  FreeIndex& index(Pool pool) { return index_[static_cast<std::size_t>(pool)]; }
  FreeIndex& index(const Block& block) { return index_[block.pool]; }
  void UseIdle(Chunk* chunk) {
    IdleListOf(chunk).Remove(chunk);
    chunk->recalls_before_use = recalls_;
  }
  // Free bytes in chunks that are in use.
  std::size_t unused_bytes() const {
    return blocks_.chunk_bytes() - taken_bytes_ - idle_.bytes() -
           idle_loans_.bytes();
  }
  // Whether a free block may serve `size`. An idle chunk may, if the policy
  // allows to split it.
  bool MayServe(const Block& block, std::size_t size) const {
    return !BlockList::IsWholeChunk(&block) || MayCut(block.size, size);
  }
  bool MayCut(std::size_t chunk_bytes, std::size_t size) const;
  // Bytes to take of a free block for a block of `size`.
  std::size_t BytesToTake(const Block& block, std::size_t size) const {
    return policy_.StaysWhole(block.size) && BlockList::IsWholeChunk(&block)
               ? block.size
               : size;
  }
  // Null if no block fits. At least one record is in stock.
  Block* TakeBestFit(Pool pool, std::size_t size) noexcept;
  // As TakeBestFit, where chunks are ranges. Also null if the best fit is an
  // idle loan; then FindSlowly decides.
  Block* TakeInRanges(Pool pool, std::size_t size) noexcept;
  // Splits `size` bytes from a free block in the index; null if records ran
  // out.
  Block* Carve(Block* block, std::size_t size) noexcept;
  // Counts a block that has left its list as in use.
  Block* MakeLive(Block* block) noexcept;
  // Splits `size` bytes from a block that has left its index `blocks`. At least
  // one record is in stock.
  template <bool kInRanges>
  Block* Cut(FreeIndex& blocks, Block* block, std::size_t size) noexcept;
  Block* FindAndCarve(Pool pool, std::size_t size) noexcept;

  // The largest free block, to the accuracy of its class.
  std::size_t LargestFree() const noexcept;

  // For a strategy with address ranges as chunks. Block::pool of a free block
  // is the number of its list: the index of a pool or, above kPools, the open
  // blocks of a pool.
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
  // Splits `size` bytes from an open block. The rest stays in its list, next to
  // the large hole. At least one record is in stock.
  Block* CutOpen(Block* block, std::size_t size) noexcept;
  // Maps memory for a block of `size`. False: the strategy allocates a chunk
  // instead. True: `block` is the result, or null with the reason in `failure`.
  virtual bool GrowByPages(Pool /*own*/, std::size_t /*size*/,
                           Block** /*block*/, Failure& /*failure*/) noexcept {
    return false;
  }

  // The last resort before a failure: searches the other pools, splits any idle
  // chunk, and searches past the first blocks of a class. O(blocks of the
  // request's class).
  Block* FindAmongAll(Pool own, std::size_t size) noexcept;
  Pool PoolOf(const Request& request, std::size_t size) const {
    return (request.flags & kLongLived) != 0 && policy_.keeps_apart()
               ? Pool::kLongLived
               : policy_.PoolOf(size);
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
  // Adds the chunk to the lists and carves the request from it.
  Block* Publish(Pool pool, Chunk* chunk, std::size_t size) noexcept;
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
  // Whether a small block may be borrowed instead of growing; counts the
  // request.
  bool MayBorrowSmall() noexcept;
  // Frees a block as of `epoch` and coalesces it with its neighbours. The stock
  // may then exceed its limit.
  void Insert(Block* block, FreeEpochs::Epoch epoch) noexcept;
  // Coalesces `block` with its free neighbours and lists the result. For Insert
  // and InsertFree.
  template <bool kInRanges>
  void Place(Block* block, FreeEpochs::Epoch epoch) noexcept;
  // Frees a block of a range that no user freed.
  void InsertFree(Block* block, FreeEpochs::Epoch epoch) noexcept;
  // Removes an idle chunk from all lists. Null for null.
  Chunk* Detach(Chunk* chunk) noexcept;
  // Acquire the lock. The smallest idle chunk of at least `bytes`, or null.
  Chunk* DetachSmallest(std::size_t bytes) noexcept;
  // Idle chunks of at least `least` bytes, the largest first, until their sum
  // is `bytes`; linked by `next`.
  Chunk* DetachLargest(std::size_t bytes, std::size_t least) noexcept;
  Chunk* DetachAllIdle() noexcept;
  // Frees detached chunks, linked by `next`, to the system, after the work that
  // used them.
  std::size_t ReturnToSystem(Chunk* chunks) noexcept;
  // Waits for the work of the stream. False, and logged, if that fails.
  bool AwaitStream() noexcept;
  // Frees detached chunks, linked by `next`, to the pool. The pool holds them
  // until the work that used them is done. Returns the bytes that it does not
  // hold.
  std::size_t FreeChunks(Chunk* chunks, bool is_done) noexcept;
  std::size_t GiveBackIdle() noexcept;
  // GiveBackRequest::Kind::kOffer and kDone.
  std::size_t OfferIdle(std::size_t bytes) noexcept;
  std::size_t GiveBackDone(const GiveBackRequest& request) noexcept;
  // Frees all idle memory, as StreamEnds requires for the own stream.
  virtual void GiveUpIdle() noexcept;

  // Loans: auto_growth_loans.cc. Hold lock_.
  IdleChunks& IdleListOf(const Chunk* chunk) {
    return chunk->is_loan ? idle_loans_ : idle_;
  }
  bool IsLendable(const Block& block) const {
    return may_lend_ && !block.chunk->is_loan;
  }
  // A block to lend that `is_fit` accepts; null if there is none.
  template <class Predicate>
  Block* FindToLend(std::size_t bytes, Predicate is_fit) const;
  // Counts the first loan of a chunk (1), or the return of its last one (-1).
  void CountLending(const Chunk& chunk, int change) noexcept;
  // Detaches the block or, if it is idle, its whole chunk. `emptied` receives
  // the chunk that is left over.
  Allocation* CarveLoan(Block* block, std::size_t bytes,
                        std::unique_ptr<Chunk>* emptied) noexcept;
  void CloseEpoch(StreamTimeline& timeline) noexcept;
  // Whether the stream is unlikely to need the idle loan again soon. A loan for
  // small blocks that was used since the last recall is not spare.
  bool IsSpare(const Chunk& loan) const {
    return loan.first->pool != static_cast<std::uint8_t>(Pool::kSmall) ||
           static_cast<std::uint16_t>(recalls_ - loan.recalls_before_use) > 1;
  }
  // Detaches spare idle loans, or more as `which` says. Linked by `next`.
  Chunk* DetachLoans(LoanRecall which) noexcept;

  // Loans: call these without the lock.
  template <class Predicate>
  Allocation* LendIf(std::size_t bytes, Predicate is_fit) noexcept;
  // Asks the stream for its progress if a fitting block waits for its work.
  bool Ask(std::size_t bytes) noexcept;
  // Asks the stream or, if enough frees came since the last event, records an
  // event and asks that.
  void LookAtStream() noexcept;
  Allocation* LendOrdered(const LoanRequest& request) noexcept;

  const AutoGrowthPolicy policy_;
  std::atomic<bool> has_stream_{
      true};  // Whether chain_stream() may be queried.
  // Whether all work of the stream is known to be done, and no more will come.
  std::atomic<bool> is_over_{false};

  ChainLock& lock_{chain_stream().state().lock};
  // All below guarded by lock_.
  BlockList blocks_;
  std::array<FreeIndex, AutoGrowthPolicy::kPoolCount> index_;
  bool has_ranges_ = false;  // Constant after construction.
  std::array<OpenBlocks, AutoGrowthPolicy::kPoolCount> open_;
  FrontCache& cache_{chain_stream().state().cache};
  RecordStock records_{RecordSlab::Instance()};
  IdleChunks idle_;
  IdleChunks idle_loans_;  // Idle chunks that are loans of other streams.
  // Recalls of spare loans while any loan was idle; wraps.
  std::uint16_t recalls_ = 0;
  bool may_lend_ = false;
  std::size_t loans_ = 0;  // Blocks lent and not returned.
  std::size_t lent_bytes_ = 0;
  // Bytes of the chunks with loans; and the sum of the same chunks, each in
  // whole steps of kSystemStepBytes.
  std::size_t lending_bytes_ = 0;
  std::size_t lending_system_bytes_ = 0;
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
  // Value of free_count() at the last event recorded for loans; one event
  // serves a batch.
  std::uint64_t frees_at_event_ = std::uint64_t{0} - StreamTimeline::kBatch;
  std::array<bool, AutoGrowthPolicy::kPoolCount> has_grown_{};
  // Requests that searched for a loan of small blocks.
  std::uint64_t small_loans_ = 0;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_AUTO_GROWTH_AUTO_GROWTH_ALLOCATOR_H_
