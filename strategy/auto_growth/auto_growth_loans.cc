// Loans of AutoGrowthAllocator: to other streams and from them.

#include <memory>
#include <mutex>
#include <utility>

#include "strata/base/log.h"
#include "strata/base/size.h"
#include "strata/strategy/auto_growth/auto_growth_allocator.h"

namespace strata {

using Effort = ChunkHolder::LoanRequest::Effort;

std::shared_ptr<AutoGrowthAllocator> AutoGrowthAllocator::MakeLender(
    std::shared_ptr<ChunkPool> pool, std::shared_ptr<ChainStream> stream,
    const AutoGrowthPolicy& policy) {
  return MakeLender(std::make_unique<AutoGrowthAllocator>(
      std::move(pool), std::move(stream), policy));
}

std::shared_ptr<AutoGrowthAllocator> AutoGrowthAllocator::MakeLender(
    std::unique_ptr<AutoGrowthAllocator> strategy) {
  // If idle chunks are freed at once, there is little to lend.
  strategy->may_lend_ = strategy->chain_stream().timeline() != nullptr &&
                        !strategy->policy_.free_idle_chunk();
  return {strategy.release(), &AutoGrowthAllocator::Retire};
}

void AutoGrowthAllocator::Retire(AutoGrowthAllocator* strategy) noexcept {
  const std::shared_ptr<ChunkPool> pool = strategy->shared_pool();
  StreamTimeline* const timeline = strategy->chain_stream().timeline();
  // For a stream that has ended, its last event later shows which work is over.
  if (timeline != nullptr && timeline->ended()) {
    strategy->GiveUpIdle();
  } else {
    strategy->LeaveStream();
  }
  pool->loans().Retire(std::unique_ptr<ChunkHolder>(strategy));
}

void AutoGrowthAllocator::LeaveStream() noexcept {
  ReturnLoans(LoanRecall::kIdle);
  ReturnLoans(LoanRecall::kWait);
  RecallLent(LoanRecall::kIdle);
  GiveBackIdle();
  if (EndLending(End::kWhenDone)) return;
  const Status status = chain_stream().Synchronize();
  // kNotReady: a capture was announced, or a graph may still run.
  STRATA_LOG_IF(Error,
                status != Status::kSuccess && status != Status::kNotReady)
      << name() << ": cannot wait for stream " << stream().uid << " (" << status
      << "); what is left of chunks it lent is not lent";
  const auto joined = LockJoined();
  if (status == Status::kSuccess) epochs_.PassAll();
  is_over_ = status == Status::kSuccess;
  has_stream_ = false;
}

bool AutoGrowthAllocator::EndLending(End /*end*/) noexcept {
  const std::lock_guard<ChainLock> guard(lock_);
  return EndLendingLocked();
}

bool AutoGrowthAllocator::EndLendingLocked() noexcept {
  if (loans_ != 0 || idle_loans_.first() != nullptr) return false;
  may_lend_ = false;
  return true;
}

std::size_t AutoGrowthAllocator::SmallestLendable(
    std::size_t bytes) const noexcept {
  const auto joined = LockJoined();
  const Block* block = FindToLend(bytes, [](const Block&) { return true; });
  return block != nullptr ? block->size : 0;
}

template <class Predicate>
Allocation* AutoGrowthAllocator::LendIf(std::size_t bytes,
                                        Predicate is_fit) noexcept {
  std::unique_ptr<Chunk> emptied;
  Allocation* memory = nullptr;
  {
    const auto joined = LockJoined();
    epochs_.Update(*chain_stream().timeline());
    Block* block = FindToLend(bytes, is_fit);
    if (block != nullptr) memory = CarveLoan(block, bytes, &emptied);
  }
  if (memory != nullptr) chain_stream().timeline()->AcquireDone();
  return memory;
}

bool AutoGrowthAllocator::Ask(std::size_t bytes) noexcept {
  {
    const auto joined = LockJoined();
    const Block* block = FindToLend(bytes, [](const Block&) { return true; });
    if (block == nullptr) return false;
    if (block->offset_units == epochs_.current()) {
      CloseEpoch(*chain_stream().timeline());
    }
  }
  LookAtStream();
  return true;
}

void AutoGrowthAllocator::LookAtStream() noexcept {
  if (!has_stream_) return;
  StreamTimeline& timeline = *chain_stream().timeline();
  // An idle stream needs no event.
  if (timeline.SeeIdle()) return;
  bool may_record = false;
  {
    const std::lock_guard<ChainLock> guard(lock_);
    may_record = free_count() - frees_at_event_ >= StreamTimeline::kBatch;
    if (may_record) frees_at_event_ = free_count();
  }
  if (may_record) timeline.Close();
  timeline.Poll();
}

Allocation* AutoGrowthAllocator::LendOrdered(
    const LoanRequest& request) noexcept {
  Device* device = request.borrower.device();
  if (device == nullptr || request.borrower.retired()) return nullptr;
  StreamTimeline& timeline = *chain_stream().timeline();
  StreamTimeline::Tick tick = 0;
  FreeEpochs::Epoch epoch = FreeEpochs::kNone;
  std::uint64_t restarts = 0;
  {
    const auto joined = LockJoined();
    const Block* block =
        FindToLend(request.bytes, [](const Block&) { return true; });
    if (block == nullptr) return nullptr;
    if (block->offset_units == epochs_.current()) CloseEpoch(timeline);
    epoch = block->offset_units;  // CloseEpoch may have changed it.
    restarts = epochs_.restarts();
    tick = epochs_.TickOf(epoch);
  }
  const Status status =
      timeline.OrderBefore(tick, *device, request.borrower.stream());
  if (status != Status::kSuccess) return nullptr;
  return LendIf(request.bytes, [&](const Block& block) {
    return (block.offset_units <= epoch && epochs_.restarts() == restarts) ||
           epochs_.IsOver(block.offset_units);
  });
}

Allocation* AutoGrowthAllocator::Lend(const LoanRequest& request) noexcept {
  const auto is_over = [this](const Block& block) {
    return epochs_.IsOver(block.offset_units);
  };
  // Memory freed during a capture belongs to the capture.
  if (has_stream_ && !chain_stream().timeline()->MayTouch()) return nullptr;
  switch (request.effort) {
    case Effort::kNone:
      return LendIf(request.bytes, is_over);
    case Effort::kAsk:
      return has_stream_ && Ask(request.bytes) ? LendIf(request.bytes, is_over)
                                               : nullptr;
    case Effort::kOrder:
      return has_stream_ ? LendOrdered(request) : nullptr;
  }
  return nullptr;
}

void AutoGrowthAllocator::TakeBack(Allocation* loan) noexcept {
  const std::lock_guard<ChainLock> guard(lock_);
  FreeLoan(loan->block());
}

std::size_t AutoGrowthAllocator::ReturnLoans(LoanRecall which) noexcept {
  const bool wait = which == LoanRecall::kWait;
  Chunk* loans = nullptr;
  bool is_pending = false;
  StreamTimeline* timeline = chain_stream().timeline();
  {
    const auto joined = LockJoined();
    if (idle_loans_.first() == nullptr) return 0;
    if (which == LoanRecall::kSpare) ++recalls_;
    if (!wait) epochs_.Update(*timeline);
    loans = DetachLoans(which);
    // Also for loans that stay, so that the next recall can return them.
    is_pending = idle_loans_.first() != nullptr;
    for (const Chunk* chunk = idle_loans_.first(); chunk != nullptr;
         chunk = chunk->idle_next) {
      if (chunk->first->offset_units != epochs_.current()) continue;
      CloseEpoch(*timeline);
      break;
    }
  }
  const bool is_done = !wait || loans == nullptr || AwaitStream();
  std::size_t bytes = FreeChunks(loans, is_done);
  if (!is_pending || !timeline->MayTouch()) return bytes;
  LookAtStream();
  {
    const auto joined = LockJoined();
    epochs_.Update(*timeline);
    loans = DetachLoans(which);
  }
  return bytes + FreeChunks(loans, /*is_done=*/true);
}

Allocation* AutoGrowthAllocator::Borrow(std::size_t size, Effort effort,
                                        HolderList::Asked asked) noexcept {
  return pool().loans().Borrow({size, chain_stream(), effort}, *this, asked);
}

void AutoGrowthAllocator::RecallLent(LoanRecall which) noexcept {
  {
    const std::lock_guard<ChainLock> guard(lock_);
    if (loans_ == 0) return;
  }
  pool().loans().Recall(which, HolderList::Asked::kAll);
}

bool AutoGrowthAllocator::IsDuringCapture() const noexcept {
  const StreamTimeline* timeline = chain_stream().timeline();
  return timeline != nullptr && timeline->during_capture();
}

Allocation* AutoGrowthAllocator::BorrowFor(Pool own, std::size_t size,
                                           Block** block) noexcept {
  // A long-lived block would withhold the loan from its lender.
  if (own == Pool::kLongLived) return nullptr;
  if (!pool().loans().has_lenders()) return nullptr;
  if (policy_.free_idle_chunk()) return nullptr;
  if (own == Pool::kSmall) {
    const std::lock_guard<ChainLock> guard(lock_);
    if (!MayBorrowSmall()) return nullptr;
  }
  const Effort effort = policy_.loan_effort();
  const bool may_order = effort == Effort::kOrder;
  if (own == Pool::kLarge || may_order) {
    // First return idle loans, so that they coalesce at their lenders. All of
    // them where a loan may cost a wait on the device.
    *block =
        FindRecalled(size, may_order ? LoanRecall::kIdle : LoanRecall::kSpare);
    if (*block != nullptr) return nullptr;
  }
  const std::size_t loan = policy_.LoanSize(size);
  Allocation* memory = Borrow(loan, effort, HolderList::Asked::kSome);
  if (memory != nullptr || may_order) return memory;
  // Borrowing memory that its stream will need again is better than growth.
  *block = FindRecalled(size, LoanRecall::kIdle);
  return *block != nullptr ? nullptr
                           : Borrow(loan, effort, HolderList::Asked::kSome);
}

Block* AutoGrowthAllocator::FindRecalled(std::size_t size,
                                         LoanRecall which) noexcept {
  if (pool().loans().Recall(which, HolderList::Asked::kSome) == 0) {
    return nullptr;
  }
  const auto joined = LockJoined();
  Block* block = FindAndCarve(policy_.PoolOf(size), size);
  if (block != nullptr) ++untold_takes_;
  return block;
}

}  // namespace strata
