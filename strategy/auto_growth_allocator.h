#ifndef STRATA_STRATEGY_AUTO_GROWTH_ALLOCATOR_H_
#define STRATA_STRATEGY_AUTO_GROWTH_ALLOCATOR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "strata/allocation/front_cache.h"
#include "strata/allocation/hit_path.h"
#include "strata/strategy/auto_growth_policy.h"
#include "strata/strategy/block_list.h"
#include "strata/strategy/chunk_ptr.h"
#include "strata/strategy/free_epochs.h"
#include "strata/strategy/free_index.h"
#include "strata/strategy/idle_chunks.h"
#include "strata/strategy/open_blocks.h"
#include "strata/strategy/pooling_strategy.h"
#include "strata/strategy/record_stock.h"

namespace strata {

// Best fit over chunks that are taken as needed, coalesce inside, and go back
// when idle.
//
// Model: sizes are rounded up to the policy's granule, 256 bytes. The smallest
//   free block that fits, lowest address among equals, is cut: the user gets
//   its high end, the rest stays free unless it is below 512 bytes. An idle
//   chunk that the policy does not want cut is passed over. On a miss the
//   strategy grows by a chunk of the size AutoGrowthPolicy gives; if the
//   system refuses, by less, down to what the request needs; then it gives the
//   smallest idle chunk that covers the request to the system and tries again;
//   then it looks in the other pools, and cuts any chunk. A freed block joins
//   its free neighbours in the chunk. A chunk whose last block is freed is
//   idle: kept for the next request, and given back as PoolingStrategy says,
//   and before growth as the policy says. Before it grows, it takes what other
//   streams of the place have left over: an idle chunk, or a free block, which
//   is then a chunk of its own here and a block in use there until it is idle
//   and given back (Loans::Borrow). Freed blocks of sizes that come again
//   stay whole in a FrontCache, which is emptied before anybody looks at what
//   else is free, or grows.
// Threads: any thread.
// Cost: a hit is O(1) under one spin lock, without heap or device call.
// Source: paddle.md §3.3 (rules 1 to 11), without its faults: §5 A1 (Release
//   without lock), B5 (driver calls under the lock), B16 (no back-off to the
//   exact size, slivers of 256 bytes).
class AutoGrowthAllocator : public PoolingStrategy, private HitPath {
 public:
  // Blocks smaller than this are not split off: 512 bytes is the granularity of
  // the device's own allocations (cuda_semantics.md H2).
  static constexpr std::size_t kMinRemainderBytes = 512;

  AutoGrowthAllocator(std::shared_ptr<ChunkPool> pool,
                      std::shared_ptr<ChainStream> stream,
                      const AutoGrowthPolicy& policy)
      : AutoGrowthAllocator(std::move(pool), std::move(stream), policy,
                            /*is_complete=*/true) {}
  ~AutoGrowthAllocator() override;

  // One that also lends to other streams; what is lent may outlive the result.
  static std::shared_ptr<AutoGrowthAllocator> MakeLender(
      std::shared_ptr<ChunkPool> pool, std::shared_ptr<ChainStream> stream,
      const AutoGrowthPolicy& policy);
  // Makes `strategy`, which is complete, lend to other streams.
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

  // Whether lists, indices and counters agree. For tests; O(blocks).
  virtual bool IsConsistent() const;

 protected:
  // Not complete: a derived strategy, which calls AddHolder at the end of its
  // constructor.
  AutoGrowthAllocator(std::shared_ptr<ChunkPool> pool,
                      std::shared_ptr<ChainStream> stream,
                      const AutoGrowthPolicy& policy, bool is_complete);

  // Two streams that take turns would pass small memory to and fro for ever. So
  // many requests of small blocks look for a loan before they grow, and one
  // more for so many frees; with a chunk of its own a stream needs none.
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

  // Nobody allocates here any more.
  static void Retire(AutoGrowthAllocator* strategy) noexcept;
  // From here on the stream may be destroyed without a word. Waits for it.
  void LeaveStream() noexcept;

  // Holds the lock, with every free block in the index, for what comes between
  // the requests and frees of users.
  class Joined {
   public:
    explicit Joined(const AutoGrowthAllocator& strategy)
        : guard_(strategy.lock_) {
      strategy.JoinAll();
    }
    Joined(const Joined&) = delete;
    Joined& operator=(const Joined&) = delete;

   private:
    const std::lock_guard<ChainLock> guard_;
  };
  // Blocks of the cache, linked by free_next, become free like others.
  void Join(Block* cached) noexcept;
  // Where free blocks are kept is no part of what others see of them.
  void JoinAll() const noexcept {
    const_cast<AutoGrowthAllocator&>(*this).Join(cache_.TakeAll());
  }
  // As the bytes of the chunks have changed.
  void LimitCache() noexcept {
    cache_.set_limit_bytes(policy_.FrontCacheLimit(blocks_.chunk_bytes()));
  }
  // From the index, if need be with what the cache keeps. Inline up to where a
  // search finds a block at once; the rest is FindSlowly.
  Block* Find(std::size_t size) noexcept;
  Block* FindSlowly(std::size_t size) noexcept;

  // How often users freed, but for what the cache keeps now. Cost: that of
  // FrontCache::hits.
  std::uint64_t free_count() const {
    return gives_ - taken_back_ + cache_.hits();
  }

  // stats() for a caller that holds the lock, with all blocks joined.
  Stats StatsLocked() const;
  // With the lock, all blocks joined.
  std::size_t free_blocks() const {
    return blocks_.block_count() - blocks_.unusable_count() - (takes_ - gives_);
  }

  FreeIndex& index(Pool pool) { return index_[static_cast<std::size_t>(pool)]; }
  FreeIndex& index(const Block& block) { return index_[block.pool]; }
  // The idle chunk will be used.
  void UseIdle(Chunk* chunk) {
    IdleListOf(chunk).Remove(chunk);
    chunk->recalls_before_use = recalls_;
  }
  // Free bytes in chunks that are in use.
  std::size_t unused_bytes() const {
    return blocks_.chunk_bytes() - taken_bytes_ - idle_.bytes() -
           idle_loans_.bytes();
  }
  // Whether a free block may serve `size`: an idle chunk only if the policy
  // allows to cut it.
  bool MayServe(const Block& block, std::size_t size) const {
    return !BlockList::IsWholeChunk(&block) || MayCut(block.size, size);
  }
  bool MayCut(std::size_t chunk_bytes, std::size_t size) const;
  // How much to take of a free block for a block of `size`.
  std::size_t BytesToTake(const Block& block, std::size_t size) const {
    return policy_.StaysWhole(block.size) && BlockList::IsWholeChunk(&block)
               ? block.size
               : size;
  }
  // Takes the best fit, with at least a record at hand; null if none fits.
  Block* TakeBestFit(Pool pool, std::size_t size) noexcept;
  // Takes the best fit where chunks are ranges. Null if no block fits, if an
  // inner open block may fit better, or if the best fit is an idle loan: then
  // FindSlowly decides.
  Block* TakeInRanges(Pool pool, std::size_t size) noexcept;
  // Cuts `size` bytes from a free, indexed block; null if records ran out.
  Block* Carve(Block* block, std::size_t size) noexcept;
  // Counts a block that has left its list as handed out.
  Block* MakeLive(Block* block) noexcept;
  // The same for a block that has left its index `blocks`, with at least a
  // record at hand.
  Block* Cut(FreeIndex& blocks, Block* block, std::size_t size) noexcept;
  Block* FindAndCarve(Pool pool, std::size_t size) noexcept;

  // The largest free block, to the accuracy of its class.
  std::size_t LargestFree() const noexcept;

  // For a strategy whose chunks are address ranges. Block::pool of a free block
  // names its list: the index of a pool, or, above, a list of its open blocks.
  static constexpr unsigned kPools = AutoGrowthPolicy::kPoolCount;
  static bool IsInOpenBlocks(const Block& block) {
    return block.pool >= kPools;
  }
  static bool IsInTails(const Block& block) {
    return block.pool >= (1 + OpenBlocks::kTails) * kPools;
  }
  static_assert((1 + OpenBlocks::kLists) * kPools <= BlockList::kPendingPool);
  // Puts a free block into the list that its neighbours say, and takes it out.
  void AddFree(Block* block) noexcept;
  void RemoveFree(Block* block) noexcept;
  // A neighbour of `block`, which may be null or in use, became a hole, or was
  // one.
  void Refresh(Block* block) noexcept {
    if (!BlockList::IsFree(block)) return;
    RemoveFree(block);
    AddFree(block);
  }
  // Cuts `size` bytes from an open block that has left its list, so that the
  // rest stays beside the hole.
  Block* CutOpen(Block* block, std::size_t size) noexcept;
  // Maps memory for a block of `size`. False: the strategy takes a chunk. Else
  // `block` is the block, or null with the reason in `failure`.
  virtual bool GrowByPages(Pool /*own*/, std::size_t /*size*/,
                           Block** /*block*/, Failure& /*failure*/) noexcept {
    return false;
  }

  // The last resort: takes from the other pools, cuts any idle chunk, and looks
  // at more than the first blocks of a class; all are better than no memory.
  // O(blocks of the request's class).
  Block* FindAmongAll(Pool own, std::size_t size) noexcept;
  Pool PoolOf(const Request& request, std::size_t size) const {
    return (request.flags & kLongLived) != 0 && policy_.keeps_apart()
               ? Pool::kLongLived
               : policy_.PoolOf(size);
  }
  Allocation* Grow(const Request& request, Pool own, std::size_t size,
                   Failure& failure) noexcept;
  // A new chunk for a block of `size`, or, if the system refuses, memory of
  // another stream; null if there is none.
  Allocation* TakeFromSystem(Pool own, std::size_t size,
                             Failure& failure) noexcept;
  // The chunk sizes to try. Notes how much room the place has.
  AutoGrowthPolicy::Sizes PlanGrowth(Pool own, std::size_t size,
                                     bool is_first) noexcept;
  // A chunk of one of `sizes`, but at most `most_bytes`; null if the system
  // refuses them all.
  Allocation* TakeChunk(const AutoGrowthPolicy::Sizes& sizes,
                        std::size_t most_bytes, Failure& failure) noexcept;
  // The same in the place of an idle chunk of at least `size`, the smallest,
  // which is given back; null if there is none.
  Allocation* ReplaceIdle(std::size_t size,
                          const AutoGrowthPolicy::Sizes& sizes,
                          Failure& failure) noexcept;
  // Adds the chunk to the lists and carves the request from it.
  Block* Publish(Pool pool, Chunk* chunk, std::size_t size) noexcept;
  // The memory of a new chunk, from other streams, in place of growth; null and
  // `block` if it turned up here meanwhile.
  Allocation* BorrowFor(Pool own, std::size_t size, Block** block) noexcept;
  Allocation* Borrow(std::size_t size, LoanRequest::Effort effort,
                     HolderList::Asked asked) noexcept;
  // Has all others return what this has lent, if it has: chunks of which only
  // loans are in use become idle.
  void RecallLent(LoanRecall which) noexcept;
  // A block of what recalled loans left free here; null if there is none.
  Block* FindRecalled(std::size_t size, LoanRecall which) noexcept;
  // Whether captures are announced, so that nothing goes to the system.
  bool IsDuringCapture() const noexcept;
  // Whether it serves a graph pool, whose chunks stay as long as its graphs.
  bool IsOfGraphs() const noexcept {
    return chain_stream().device() != nullptr &&
           chain_stream().timeline() == nullptr;
  }
  // Whether a small block may be borrowed instead of growing; counts it.
  bool MayBorrowSmall() noexcept;
  // Makes a block free, joined with its neighbours, since `epoch`. There may be
  // more records at hand afterwards than are kept.
  void Insert(Block* block, FreeEpochs::Epoch epoch) noexcept;
  // Joins `block` with its free neighbours and lists the result, for Insert and
  // InsertFree.
  template <bool kInRanges>
  void Place(Block* block, FreeEpochs::Epoch epoch) noexcept;
  // Makes a block of a range free that no user freed.
  void InsertFree(Block* block, FreeEpochs::Epoch epoch) noexcept;
  // Takes an idle chunk out of all lists, and returns it. Null for null.
  Chunk* Detach(Chunk* chunk) noexcept;
  // The same for the smallest of at least `bytes`; null if there is none. Takes
  // the lock.
  Chunk* DetachSmallest(std::size_t bytes) noexcept;
  // The same for chunks of at least `least` bytes, the largest first, until
  // they are `bytes` together, linked by `next`.
  Chunk* DetachLargest(std::size_t bytes, std::size_t least) noexcept;
  // The same for all that are no loans, linked by `next`.
  Chunk* DetachAllIdle() noexcept;
  // Gives detached chunks, linked by `next`, to the system, after the work that
  // used them.
  std::size_t ReturnToSystem(Chunk* chunks) noexcept;
  // Waits for the work of the stream; false, and logged, if it cannot.
  bool AwaitStream() noexcept;
  // Gives detached chunks, linked by `next`, to the pool, which keeps them
  // unless the work that used them is done; returns the bytes it does not keep.
  std::size_t FreeChunks(Chunk* chunks, bool is_done) noexcept;
  std::size_t GiveBackIdle() noexcept;
  // GiveBackRequest::Kind::kOffer and kDone.
  std::size_t OfferIdle(std::size_t bytes) noexcept;
  std::size_t GiveBackDone(std::size_t bytes) noexcept;
  // Parts with all idle memory, as StreamEnds of the own stream says.
  virtual void GiveUpIdle() noexcept;

  // Of loans: auto_growth_loans.cc. Hold lock_.
  IdleChunks& IdleListOf(const Chunk* chunk) {
    return chunk->is_loan ? idle_loans_ : idle_;
  }
  bool IsLendable(const Block& block) const {
    return may_lend_ && !block.chunk->is_loan;
  }
  // A block to lend, by `is_fit`; null if there is none.
  template <class Predicate>
  Block* FindToLend(std::size_t bytes, Predicate is_fit) const;
  // Takes the block, or all of its idle chunk, out; `emptied` gets the chunk
  // that is left over.
  // The first loan of a chunk went out (1), or the last came back (-1).
  void CountLending(const Chunk& chunk, int change) noexcept;
  Allocation* CarveLoan(Block* block, std::size_t bytes,
                        ChunkPtr* emptied) noexcept;
  void CloseEpoch(StreamTimeline& timeline) noexcept;
  // Whether the stream does not need the idle loan again soon. A loan for small
  // blocks stays if it was in use since the last recall: all are of one size,
  // so the others can do with what lies elsewhere.
  bool IsSpare(const Chunk& loan) const {
    return loan.first->pool != static_cast<std::uint8_t>(Pool::kSmall) ||
           static_cast<std::uint16_t>(recalls_ - loan.recalls_before_use) > 1;
  }
  // Takes out such idle loans; linked by `next`.
  Chunk* DetachLoans(LoanRecall which) noexcept;

  // Of loans, without the lock.
  template <class Predicate>
  Allocation* LendIf(std::size_t bytes, Predicate is_fit) noexcept;
  // If a fitting block waits for work in the stream: looks how far it is.
  bool Ask(std::size_t bytes) noexcept;
  // Asks the stream, or else, if it is not too soon, an event.
  void LookAtStream() noexcept;
  Allocation* LendOrdered(const LoanRequest& request) noexcept;

  const AutoGrowthPolicy policy_;
  std::atomic<bool> has_stream_{true};  // which may be asked
  // All work of the stream is known to be done, and there will be none.
  std::atomic<bool> is_over_{false};

  ChainLock& lock_{hit_state()->lock};
  // All below guarded by lock_.
  BlockList blocks_;
  std::array<FreeIndex, AutoGrowthPolicy::kPoolCount> index_;
  bool has_ranges_ = false;  // constant once it is constructed
  std::array<OpenBlocks, AutoGrowthPolicy::kPoolCount> open_;
  FrontCache& cache_{hit_state()->cache};
  RecordStock records_{RecordSlab::Instance()};
  IdleChunks idle_;
  IdleChunks idle_loans_;      // chunks that go back to their lenders
  std::uint16_t recalls_ = 0;  // of spare loans, while any were idle; wraps
  bool may_lend_ = false;
  std::size_t loans_ = 0;  // blocks lent and not come back
  std::size_t lent_bytes_ = 0;
  // Of the chunks with loans, and each in whole steps of the system.
  std::size_t lending_bytes_ = 0;
  std::size_t lending_system_bytes_ = 0;
  FreeEpochs epochs_;  // of free blocks: Block::offset_units
  // Blocks that became live, and free again, past the cache.
  std::uint64_t takes_ = 0;
  std::uint64_t gives_ = 0;
  // Of those, what no search found and no user freed here: growth and loans.
  std::uint64_t untold_takes_ = 0;
  std::uint64_t taken_back_ = 0;
  std::size_t taken_bytes_ = 0;  // of all that is not in the index
  std::uint64_t misses_ = 0;     // requests that had to grow
  // When an event was last recorded for loans; one serves a batch.
  std::uint64_t frees_at_event_ = std::uint64_t{0} - StreamTimeline::kBatch;
  std::array<bool, AutoGrowthPolicy::kPoolCount> has_grown_{};
  std::uint64_t small_loans_ = 0;  // requests that looked for one
};

}  // namespace strata

#endif  // STRATA_STRATEGY_AUTO_GROWTH_ALLOCATOR_H_
