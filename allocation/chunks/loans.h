#ifndef STRATA_ALLOCATION_CHUNKS_LOANS_H_
#define STRATA_ALLOCATION_CHUNKS_LOANS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "strata/allocation/chunk_holder.h"
#include "strata/allocation/chunks/holder_list.h"
#include "strata/allocation/chunks/memory_budget.h"
#include "strata/allocation/chunks/retired_holders.h"

namespace strata {

// Memory that one strategy of a place has left over and another one uses, in
// place of growth.
//
// Model: a loan is a free block, or an idle chunk for good. It is asked of the
//   holders of a HolderList, the one with the least to spare first. The
//   borrower returns it by ChunkPool::DoFree. A strategy whose chain ends
//   while it has loans out retires: it stays here until the last one returns.
// Threads: any thread. No lock is held during a call of a holder.
// Source: docs/exchange.md.
class Loans {
 public:
  using Asked = HolderList::Asked;

  // Both outlive it.
  Loans(HolderList& holders, const MemoryBudget& budget)
      : holders_(holders), budget_(budget) {}

  // Whether there is anybody to borrow from.
  bool has_lenders() const noexcept { return holders_.size() > 1; }
  // An idle chunk, or a free block as a loan, of a holder other than
  // `borrower`, the one with least to spare. Null, and nothing has changed, if
  // none has any whose earlier use comes before what the user submits from now
  // on. Never during a capture on one of the two streams.
  //
  // Cost: at most one event per holder; see LoanRequest::Effort.
  Allocation* Borrow(const LoanRequest& request, const ChunkHolder& borrower,
                     Asked asked) noexcept;
  // Has holders return `which` idle loans. Returns their bytes.
  std::size_t Recall(LoanRecall which, Asked asked) noexcept;
  // For strategies that allocate from the driver: a block of just the bytes
  // that another holder than `asking` keeps, and whose last use is over, in
  // place of one of the driver. It stays claimed. Null if no holder that is
  // asked has one.
  Allocation* FetchKept(const LoanRequest& request,
                        const ChunkHolder& asking) noexcept;

  // Keeps `holder`, which serves nobody any more, until EndLending. May be the
  // end of the pool, unless the caller holds it.
  void Retire(std::unique_ptr<ChunkHolder> holder) noexcept;
  bool has_retired() const noexcept { return retired_.size() != 0; }
  // Destroys those of the first `most` retired holders that can end.
  // Returns the bytes of their idle chunks, without chunks that they offer.
  std::size_t EndRetired(std::size_t most = SIZE_MAX) noexcept;

 private:
  // One round of it.
  std::size_t EndSomeRetired(std::size_t most) noexcept;

  HolderList& holders_;
  const MemoryBudget& budget_;
  RetiredHolders retired_;
  std::atomic<std::uint64_t> end_calls_{0};  // of EndRetired
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_CHUNKS_LOANS_H_
