// How memory that one strategy has left over serves another in place of growth:
// the part of ChunkPool that arranges loans.

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "strata/allocation/chunk_pool.h"
#include "strata/allocation/streams/stream_timeline.h"

namespace strata {
namespace {

using Effort = LoanRequest::Effort;

}  // namespace

Allocation* ChunkPool::Borrow(const LoanRequest& request,
                              const ChunkHolder& borrower,
                              Asked asked) noexcept {
  // Memory that a capture uses has to stay with it.
  StreamTimeline* timeline = request.borrower.timeline();
  if (timeline == nullptr || !timeline->MayTouch()) return nullptr;
  struct Lender {
    HolderEntry* entry;
    std::size_t bytes;
  };
  const Round round = RoundOf(asked);
  try {
    // The smallest first.
    std::vector<Lender> lenders;
    lenders.reserve(round.count);
    for (std::size_t i = 0; i < round.count; ++i) {
      HolderEntry& entry = round[i];
      if (entry.holder == &borrower) continue;
      const CallGate::Pass pass(entry.gate);
      const std::size_t bytes =
          pass ? entry.holder->SmallestLendable(request.bytes) : 0;
      if (bytes != 0) lenders.push_back({&entry, bytes});
    }
    std::stable_sort(
        lenders.begin(), lenders.end(),
        [](const Lender& a, const Lender& b) { return a.bytes < b.bytes; });
    for (const Effort effort : {Effort::kNone, Effort::kAsk, Effort::kOrder}) {
      if (effort > request.effort) break;
      for (const Lender& lender : lenders) {
        const CallGate::Pass pass(lender.entry->gate);
        if (!pass) continue;
        if (Allocation* memory = lender.entry->holder->Lend(
                {request.bytes, request.borrower, effort})) {
          return memory;
        }
      }
    }
  } catch (const std::bad_alloc&) {
    // No host memory for the list: nobody is asked.
  }
  AskOthersNext();
  return nullptr;
}

std::size_t ChunkPool::RecallLoans(LoanRecall which, Asked asked) noexcept {
  std::size_t returned = 0;
  ForEachHolder(
      [&](ChunkHolder& holder) { returned += holder.ReturnLoans(which); },
      asked);
  return returned;
}

void ChunkPool::Retire(std::unique_ptr<ChunkHolder> holder) noexcept {
  // Two for one that comes, so that none is left behind for long.
  BuryRetired(/*most=*/2);
  if (!holder->EndLending()) KeepRetired(std::move(holder));
}

void ChunkPool::KeepRetired(std::unique_ptr<ChunkHolder> holder) noexcept {
  ChunkHolder* const last = holder.get();
  const std::lock_guard<SpinLock> guard(lock_);
  (last_retired_ != nullptr ? last_retired_->next_retired_ : retired_) =
      std::move(holder);
  last_retired_ = last;
  ++retired_count_;
}

std::unique_ptr<ChunkHolder> ChunkPool::TakeRetired() noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  std::unique_ptr<ChunkHolder> first = std::move(retired_);
  if (first == nullptr) return nullptr;
  retired_ = std::move(first->next_retired_);
  if (retired_ == nullptr) last_retired_ = nullptr;
  --retired_count_;
  return first;
}

bool ChunkPool::HasRetired() const noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  return retired_ != nullptr;
}

std::size_t ChunkPool::BuryRetired(std::size_t most) noexcept {
  {
    const std::lock_guard<SpinLock> guard(lock_);
    most = std::min(most, retired_count_);
  }
  // One by one, as each may take a while.
  std::size_t given = 0;
  for (; most != 0; --most) {
    std::unique_ptr<ChunkHolder> holder = TakeRetired();
    if (holder == nullptr) break;
    if (!holder->EndLending()) {
      KeepRetired(std::move(holder));
      continue;
    }
    const std::size_t bytes = holder->IdleIsDone() ? holder->IdleBytes() : 0;
    const std::size_t unreturned = unreturned_bytes();
    holder.reset();
    // Of which the system may refuse some.
    const std::size_t now = std::max(unreturned, unreturned_bytes());
    given += bytes - std::min(bytes, now - unreturned);
  }
  return given;
}

}  // namespace strata
