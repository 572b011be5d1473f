#include "strata/allocation/chunks/loans.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "strata/allocation/streams/chain_stream.h"
#include "strata/allocation/streams/stream_timeline.h"

namespace strata {
namespace {

using Effort = ChunkHolder::LoanRequest::Effort;
using Round = HolderList::Round;

struct Lender {
  HolderList::Entry* entry;
  std::size_t bytes;
};

// Holders of a round that could lend, the holder with the least idle memory
// first.
//
// Errors: std::bad_alloc.
std::vector<Lender> FindLenders(const Round& round, std::size_t bytes,
                                const ChunkHolder& borrower) {
  std::vector<Lender> lenders;
  lenders.reserve(round.count);
  for (std::size_t i = 0; i < round.count; ++i) {
    HolderList::Entry& entry = round[i];
    if (entry.holder == &borrower) continue;
    const CallGate::Pass pass(entry.gate);
    const std::size_t lendable =
        pass ? entry.holder->SmallestLendable(bytes) : 0;
    if (lendable != 0) lenders.push_back({&entry, lendable});
  }
  std::stable_sort(
      lenders.begin(), lenders.end(),
      [](const Lender& a, const Lender& b) { return a.bytes < b.bytes; });
  return lenders;
}

Allocation* AskInTurn(const std::vector<Lender>& lenders,
                      const ChunkHolder::LoanRequest& request) noexcept {
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
  return nullptr;
}

}  // namespace

Allocation* Loans::Borrow(const ChunkHolder::LoanRequest& request,
                          const ChunkHolder& borrower, Asked asked) noexcept {
  // Memory that a capture uses must stay with it.
  StreamTimeline* timeline = request.borrower.timeline();
  if (timeline == nullptr || !timeline->MayTouch()) return nullptr;
  const Round round = holders_.RoundOf(asked);
  try {
    const std::vector<Lender> lenders =
        FindLenders(round, request.bytes, borrower);
    if (Allocation* memory = AskInTurn(lenders, request)) return memory;
  } catch (const std::bad_alloc&) {
    // No host memory for the list: no holder is asked.
  }
  holders_.AskOthersNext();
  return nullptr;
}

std::size_t Loans::Recall(ChunkHolder::LoanRecall which, Asked asked) noexcept {
  std::size_t returned = 0;
  holders_.ForEach(
      [&](ChunkHolder& holder) { returned += holder.ReturnLoans(which); },
      asked);
  return returned;
}

Allocation* Loans::FetchKept(const ChunkHolder::LoanRequest& request,
                             const ChunkHolder& asking) noexcept {
  const Round round = holders_.RoundOf(Asked::kSome);
  for (std::size_t i = 0; i < round.count; ++i) {
    HolderList::Entry& entry = round[i];
    if (entry.holder == &asking) continue;
    const CallGate::Pass pass(entry.gate);
    if (!pass) continue;
    if (Allocation* kept = entry.holder->Lend(request)) return kept;
  }
  holders_.AskOthersNext();
  return nullptr;
}

void Loans::Retire(std::unique_ptr<ChunkHolder> holder) noexcept {
  // Two for each new holder, so that none stays for long.
  EndRetired(/*most=*/2);
  const std::uint64_t calls = end_calls_;
  if (holder->EndLending(end_)) return;
  Push(std::move(holder));
  // Another call of EndRetired() may have missed the new holder.
  if (end_calls_ != calls) EndRetired();
}

std::size_t Loans::EndRetired(std::size_t most) noexcept {
  return End(most, Wait::kNever);
}

std::size_t Loans::ReleaseRetired() noexcept {
  return End(SIZE_MAX, Wait::kForWork);
}

std::size_t Loans::End(std::size_t most, Wait wait) noexcept {
  std::size_t given = 0;
  for (std::uint64_t calls = ++end_calls_;;) {
    given += EndSome(most, std::exchange(wait, Wait::kNever));
    // Another call may have missed a holder that this call had taken out.
    const std::uint64_t now = end_calls_;
    if (now == calls) return given;
    calls = now;
  }
}

std::size_t Loans::EndSome(std::size_t most, Wait wait) noexcept {
  // One by one, because each may take long.
  std::size_t given = 0;
  for (most = std::min(most, retired_count_.load()); most != 0; --most) {
    std::unique_ptr<ChunkHolder> holder = Pop();
    if (holder == nullptr) break;
    if (wait == Wait::kForWork) {
      given += holder->GiveBackAll();
    }
    if (!holder->EndLending(end_)) {
      Push(std::move(holder));
      continue;
    }
    const std::size_t bytes =
        holder->IdleIsDone() ? holder->Idle(/*fit_bytes=*/0).bytes : 0;
    const std::size_t unreturned = budget_.unreturned_bytes();
    holder.reset();
    // The system may have refused a part of the bytes.
    const std::size_t now = std::max(unreturned, budget_.unreturned_bytes());
    given += bytes - std::min(bytes, now - unreturned);
  }
  return given;
}

void Loans::Push(std::unique_ptr<ChunkHolder> holder) noexcept {
  ChunkHolder* const last = holder.get();
  const std::lock_guard<SpinLock> guard(lock_);
  (last_retired_ != nullptr ? last_retired_->next_retired_ : first_retired_) =
      std::move(holder);
  last_retired_ = last;
  ++retired_count_;
}

std::unique_ptr<ChunkHolder> Loans::Pop() noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  std::unique_ptr<ChunkHolder> first = std::move(first_retired_);
  if (first == nullptr) return nullptr;
  first_retired_ = std::move(first->next_retired_);
  if (first_retired_ == nullptr) last_retired_ = nullptr;
  --retired_count_;
  return first;
}

}  // namespace strata
