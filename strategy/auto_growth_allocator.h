#ifndef STRATA_STRATEGY_AUTO_GROWTH_ALLOCATOR_H_
#define STRATA_STRATEGY_AUTO_GROWTH_ALLOCATOR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "strata/allocation/chain_stream.h"
#include "strata/allocation/chunk_pool.h"
#include "strata/allocation/record_slab.h"
#include "strata/allocation/size.h"
#include "strata/strategy/auto_growth_policy.h"
#include "strata/strategy/block_list.h"
#include "strata/strategy/free_epochs.h"
#include "strata/strategy/free_index.h"

namespace strata {

// Best fit over chunks that are taken as needed, coalesce inside, and go back
// when idle.
//
// Model: sizes are rounded up to the policy's granule, 256 bytes. The smallest
// free block that fits,
//   lowest address among equals, is cut: the user gets its high end, the rest
//   stays free unless it is below 512 bytes. On a miss the strategy grows by a
//   chunk of the size AutoGrowthPolicy gives; if the system refuses, by less,
//   down to what the request needs; then it looks in the other pool. A freed
//   block joins its free neighbours in the chunk. A chunk whose last block is
//   freed is idle: kept for the next request, and given back by Release, by
//   exhaustion anywhere at the place, and before growth as the policy says.
//   Before it grows, it takes what other streams of the place have left over:
//   an idle chunk, or a free block, which is then a chunk of its own here and a
//   block in use there until it is idle and given back (ChunkPool::Borrow).
// Threads: any thread. No lock is held while the system or the device is
//   called.
// Cost: a hit is O(1) under one spin lock, without heap or device call.
// Source: paddle.md §3.3 (rules 1 to 11), without its faults: §5 A1 (Release
//   without lock), B5 (driver calls under the lock), B16 (no back-off to the
//   exact size, slivers of 256 bytes).
class AutoGrowthAllocator final : public Allocator,
                                  private HitPath,
                                  private ChunkHolder {
 public:
  // Blocks smaller than this are not split off: 512 bytes is the granularity of
  // the device's own allocations (cuda_semantics.md H2).
  static constexpr std::size_t kMinRemainderBytes = 512;

  AutoGrowthAllocator(std::shared_ptr<ChunkPool> pool,
                      std::shared_ptr<ChainStream> stream,
                      const AutoGrowthPolicy& policy);
  // Every block has been freed; if not, their chunks are leaked and logged.
  ~AutoGrowthAllocator() override;

  // One that also lends to other streams; what is lent may outlive the result.
  static std::shared_ptr<AutoGrowthAllocator> MakeLender(
      std::shared_ptr<ChunkPool> pool, std::shared_ptr<ChainStream> stream,
      const AutoGrowthPolicy& policy);

  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override;
  void DoFree(Allocation* allocation) noexcept override;
  // Waits for the stream's work, then gives back all idle chunks.
  std::size_t Release() noexcept override { return GiveBackAll(); }
  bool RecordStream(Allocation* allocation, Stream stream) noexcept override;
  void EraseStream(Allocation* allocation, Stream stream) noexcept override;
  void StreamDestroyed(Stream stream) noexcept override;

  Allocator* underlying() const override { return pool_.get(); }
  const char* name() const override { return "auto_growth"; }
  Place place() const override { return pool_->place(); }
  Stream stream() const override { return stream_->stream(); }
  std::size_t max_alignment() const override {
    return FreeIndex::kGranuleBytes;
  }
  std::size_t natural_alignment() const override {
    return FreeIndex::kGranuleBytes;
  }
  Stats stats() const override;
  void ResetPeak() override;
  void Accept(AllocatorVisitor& visitor) const override;
  Reclaimer* reclaimer() const override { return pool_->reclaimer(); }
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
  Stream holder_stream() const noexcept override { return stream(); }
  std::size_t IdleBytes() const noexcept override;
  std::size_t IdleSystemBytes() const noexcept override;
  std::size_t SmallestIdle(std::size_t bytes) const noexcept override;
  std::size_t LargestIdle() const noexcept override;
  bool IdleIsDone() noexcept override;
  std::size_t GiveBack(std::size_t bytes) noexcept override;
  std::size_t OfferIdle(std::size_t bytes) noexcept override;
  std::size_t GiveBackAll() noexcept override;
  std::size_t SmallestLendable(std::size_t bytes) const noexcept override;
  Allocation* Lend(const LoanRequest& request) noexcept override;
  void TakeBack(Allocation* loan) noexcept override;
  std::size_t ReturnLoans(bool wait) noexcept override;
  bool EndLending() noexcept override;

  // Nobody allocates here any more.
  static void Retire(AutoGrowthAllocator* strategy) noexcept;

  FreeIndex& index(Pool pool) { return index_[static_cast<std::size_t>(pool)]; }
  // Cuts `size` bytes from a free, indexed block; null if records ran out.
  Block* Carve(Block* block, std::size_t size) noexcept;
  Block* FindAndCarve(Pool pool, std::size_t size, bool exact) noexcept;
  // The last resort: splits what kLongLived would keep whole, and takes from
  // the other pool; both are better than no memory.
  Block* FindAnywhere(std::size_t size) noexcept;
  // Takes records from the slab. False if the host is out of memory.
  bool Restock() noexcept;
  Allocation* Grow(const Request& request, std::size_t size,
                   Failure& failure) noexcept;
  // Adds the chunk to the lists and carves the request from it.
  Block* Publish(Chunk* chunk, std::size_t size, FreeEpochs::Epoch epoch,
                 RecordList& records) noexcept;
  // The memory of a new chunk, from other streams, in place of growth; null and
  // `block` if it turned up here meanwhile.
  Allocation* BorrowFor(std::size_t size, Block** block) noexcept;
  Allocation* Borrow(std::size_t size, LoanRequest::Effort effort) noexcept;
  // Makes a block free, joined with its neighbours, since `epoch`.
  void Insert(Block* block, FreeEpochs::Epoch epoch) noexcept;
  // Takes an idle chunk out of all lists: this one, or the smallest of at least
  // `bytes` (null if there is none).
  void Detach(Chunk* chunk) noexcept;
  Chunk* DetachIdle(std::size_t bytes) noexcept;
  std::size_t ReturnToSystem(Chunk* chunk) noexcept;
  std::size_t GiveBackIdle() noexcept;

  // Hold lock_.
  bool IsLendable(const Block& block) const {
    return may_lend_ && !block.chunk->is_loan();
  }
  // A block to lend, by `is_fit`; null if there is none.
  template <class Predicate>
  Block* FindToLend(std::size_t bytes, Predicate is_fit) const;
  // Takes the block, or all of its idle chunk, out; `emptied` gets the chunk
  // that is left over.
  Allocation* CarveLoan(Block* block, std::size_t bytes,
                        Chunk** emptied) noexcept;
  void CloseEpoch(StreamTimeline& timeline) noexcept;
  // Takes out the idle loans, or those whose last use is over; linked through
  // Chunk::next.
  Chunk* DetachLoans(bool all) noexcept;

  template <class Predicate>
  Allocation* LendIf(std::size_t bytes, Predicate is_fit) noexcept;
  // Frees loans, linked through Chunk::next; returns their bytes.
  std::size_t Return(Chunk* loans) noexcept;
  // If a fitting block waits for work in the stream: looks how far it is.
  bool Ask(std::size_t bytes) noexcept;
  // Asks the stream, or else, if it is not too soon, an event.
  void LookAtStream() noexcept;
  Allocation* LendOrdered(const LoanRequest& request) noexcept;
  Failure Refusal(Failure::Reason reason, const Request& request) const;

  void LinkIdle(Chunk* chunk);
  void UnlinkIdle(Chunk* chunk);

  const std::shared_ptr<ChunkPool> pool_;
  const std::shared_ptr<ChainStream> stream_;
  const AutoGrowthPolicy policy_;

  mutable SpinLock lock_;
  // All below guarded by lock_.
  BlockList blocks_;
  std::array<FreeIndex, AutoGrowthPolicy::kPoolCount> index_;
  RecordList records_;
  Chunk* idle_ = nullptr;
  std::size_t idle_bytes_ = 0;
  std::size_t idle_system_bytes_ = 0;  // each chunk in whole steps
  Chunk* idle_loans_ = nullptr;        // idle chunks that go to their lenders
  std::size_t lent_bytes_ = 0;
  std::size_t lending_system_bytes_ = 0;  // of each chunk with loans, likewise
  std::size_t loans_ = 0;                 // blocks lent and not come back
  bool may_lend_ = false;
  FreeEpochs epochs_;  // of free blocks: Block::offset_units
  std::uint64_t frees_ = 0;
  // When an event was last recorded for loans; one serves a batch.
  std::uint64_t frees_at_event_ = std::uint64_t{0} - StreamTimeline::kBatch;
  std::array<bool, AutoGrowthPolicy::kPoolCount> has_grown_{};
  Stats stats_;
};

inline void AutoGrowthAllocator::LinkIdle(Chunk* chunk) {
  const bool is_loan = chunk->is_loan();
  Chunk*& list = is_loan ? idle_loans_ : idle_;
  chunk->idle_previous = nullptr;
  chunk->idle_next = list;
  if (list != nullptr) list->idle_previous = chunk;
  list = chunk;
  if (is_loan) return;
  idle_bytes_ += chunk->memory->size();
  idle_system_bytes_ += AlignUp(chunk->memory->size(), kSystemStepBytes);
}

inline void AutoGrowthAllocator::UnlinkIdle(Chunk* chunk) {
  const bool is_loan = chunk->is_loan();
  if (chunk->idle_previous != nullptr) {
    chunk->idle_previous->idle_next = chunk->idle_next;
  } else {
    (is_loan ? idle_loans_ : idle_) = chunk->idle_next;
  }
  if (chunk->idle_next != nullptr) {
    chunk->idle_next->idle_previous = chunk->idle_previous;
  }
  if (is_loan) return;
  idle_bytes_ -= chunk->memory->size();
  idle_system_bytes_ -= AlignUp(chunk->memory->size(), kSystemStepBytes);
}

}  // namespace strata

#endif  // STRATA_STRATEGY_AUTO_GROWTH_ALLOCATOR_H_
