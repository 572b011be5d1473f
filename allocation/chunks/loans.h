#ifndef STRATA_ALLOCATION_CHUNKS_LOANS_H_
#define STRATA_ALLOCATION_CHUNKS_LOANS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "strata/allocation/chunks/chunk_holder.h"
#include "strata/allocation/chunks/holder_list.h"
#include "strata/allocation/chunks/memory_budget.h"
#include "strata/platform/locks/spin_lock.h"

namespace strata {

// Idle memory of one strategy of a place that another one uses instead of
// growing.
//
// Model: a loan is a free block. An idle chunk changes its owner for good.
//   Holders of a HolderList are asked, the holder with the least idle memory
//   first. The borrower returns a loan by ChunkPool::DoFree(). If the chain of
//   a strategy ends while it has lent blocks, the strategy retires: it stays
//   here until the last one returns.
// Threads: any thread. No lock is held during a call of a holder.
// Source: docs/exchange.md.
class Loans {
 public:
  using Asked = HolderList::Asked;

  // Both must outlive this object.
  Loans(HolderList& holders, const MemoryBudget& budget)
      : holders_(holders), budget_(budget) {}

  // True if there is a holder to borrow from.
  bool has_lenders() const noexcept { return holders_.size() > 1; }
  // Returns an idle chunk, or a free block as a loan, of the holder other than
  // `borrower` with the least idle memory. Its earlier use is ordered before
  // all work that the user submits from now on. If there is none, returns null
  // and changes nothing. Never lends during a capture on one of the two
  // streams.
  //
  // Cost: at most one event per holder; see ChunkHolder::LoanRequest::Effort.
  Allocation* Borrow(const ChunkHolder::LoanRequest& request,
                     const ChunkHolder& borrower, Asked asked) noexcept;
  // Makes holders return the idle loans `which`. Returns their bytes.
  std::size_t Recall(ChunkHolder::LoanRecall which, Asked asked) noexcept;
  // For strategies that allocate from the driver: returns a block of exactly
  // the requested bytes that another holder than `asking` keeps. Its last use
  // has completed. It replaces a driver allocation and stays claimed. Null if
  // no holder that was asked has one.
  Allocation* FetchKept(const ChunkHolder::LoanRequest& request,
                        const ChunkHolder& asking) noexcept;

  // Keeps `holder`, which serves no chain any more, until EndLending(). This
  // object may be destroyed meanwhile unless the caller holds the pool.
  void Retire(std::unique_ptr<ChunkHolder> holder) noexcept;
  bool has_retired() const noexcept { return retired_count_ != 0; }
  // Call it after the last allocation at the place. From then on retired
  // holders end although work may use their pages (ChunkHolder::End::kNow).
  void Close() noexcept { end_ = ChunkHolder::End::kNow; }
  // Destroys each of the first `most` retired holders that can end. Returns the
  // bytes of their idle chunks, without chunks that they offer.
  std::size_t EndRetired(std::size_t most = SIZE_MAX) noexcept;
  // Like EndRetired(), but first waits for the work of each holder, and also
  // releases the idle memory of those that cannot end.
  std::size_t ReleaseRetired() noexcept;

 private:
  enum class Wait : std::uint8_t { kNever, kForWork };
  // Waits in the first round only.
  std::size_t End(std::size_t most, Wait wait) noexcept;
  // One round of End().
  std::size_t EndSome(std::size_t most, Wait wait) noexcept;
  // Push appends to the queue of retired holders. Pop removes the one that was
  // pushed first; null if there is none.
  void Push(std::unique_ptr<ChunkHolder> holder) noexcept;
  std::unique_ptr<ChunkHolder> Pop() noexcept;

  HolderList& holders_;
  const MemoryBudget& budget_;
  SpinLock lock_;
  // Linked through ChunkHolder::next_retired_; guarded by lock_.
  std::unique_ptr<ChunkHolder> first_retired_;
  ChunkHolder* last_retired_ = nullptr;  // guarded by lock_
  std::atomic<std::size_t> retired_count_{0};
  std::atomic<std::uint64_t> end_calls_{0};  // calls of End()
  std::atomic<ChunkHolder::End> end_{ChunkHolder::End::kWhenDone};
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_CHUNKS_LOANS_H_
