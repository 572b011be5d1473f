#include "strata/strategy/shared/stream_view.h"

#include <mutex>
#include <utility>

namespace strata {
namespace {

std::shared_ptr<BusyFrees> MakeBusy(
    const std::shared_ptr<Allocator>& strategy,
    const std::shared_ptr<SharedOrder>& order,
    const std::shared_ptr<SharedOrder::Share>& share,
    const std::shared_ptr<DeferredFrees>& frees) {
  if (frees == nullptr || share->stream().timeline() == nullptr) return nullptr;
  auto busy = std::make_shared<BusyFrees>(*frees, strategy, order, share);
  frees->AddSource(busy);
  return busy;
}

// Holds the lock of the strategy's hits, unless these lock by themselves.
std::unique_lock<ChainLock> LockOf(HitPath& path) {
  ChainLock* const lock = path.hit_lock();
  return lock != nullptr ? std::unique_lock<ChainLock>(*lock)
                         : std::unique_lock<ChainLock>();
}

}  // namespace

StreamView::StreamView(std::shared_ptr<Allocator> strategy,
                       std::shared_ptr<SharedOrder> order,
                       std::shared_ptr<ChainStream> stream,
                       std::shared_ptr<DeferredFrees> frees)
    : Decorator(strategy),
      HitPath(stream->state()),
      below_(strategy->hit_path()),
      order_(std::move(order)),
      share_(order_->Join(std::move(stream))),
      frees_(std::move(frees)),
      timeline_(share_->stream().timeline()),
      waits_on_device_(frees_ != nullptr && frees_->waits_on_device()),
      busy_(MakeBusy(strategy, order_, share_, frees_)) {}

StreamView::~StreamView() {
  if (busy_ != nullptr) busy_->Leave();
  order_->Leave(*share_);
}

Block* StreamView::TakeBelow(std::size_t bytes) noexcept {
  const std::unique_lock<ChainLock> guard = LockOf(*below_);
  Block* const block = below_->Take(bytes);
  if (block == nullptr) return nullptr;
  // After Take, so that the free of this block has been noted.
  if (!order_->IsOrdered(*share_, SharedOrder::LaneOf(*block))) [[unlikely]] {
    below_->PutBack(block);
    return nullptr;
  }
  block->requested = bytes;
  return block;
}

Block* StreamView::TakeCached(std::size_t bytes) noexcept {
  // The first request takes the full path.
  if (!order_->IsActive(*share_) || IsDuringCapture()) return nullptr;
  Block* block = busy_ != nullptr && !busy_->empty()
                     ? busy_->Take(Request{bytes})
                     : nullptr;
  if (block == nullptr) block = TakeBelow(bytes);
  if (block != nullptr) uses_.Count(*block);
  return block;
}

bool StreamView::GiveCached(Block* block) noexcept {
  // Count first: then another thread may own the block.
  uses_.Uncount(*block);
  bool is_given = false;
  if (IsDirect()) {
    order_->NoteFree(*share_, SharedOrder::LaneOf(*block));
    const std::unique_lock<ChainLock> guard = LockOf(*below_);
    is_given = below_->Give(block);
  } else {
    // The full path records events, and drains after DeferredFrees::Close().
    is_given = !IsDuringCapture() && !frees_->is_closed() &&
               !busy_->IsEventDue() && busy_->Add(block);
  }
  if (!is_given) [[unlikely]] {
    uses_.Recount(*block);
  }
  return is_given;
}

Allocation* StreamView::TakeFromStrategy(const Request& request,
                                         Failure& failure) noexcept {
  Allocation* allocation = nullptr;
  if (frees_ != nullptr && frees_->any()) {
    allocation = TryHeld(*underlying(), request);
    // On a miss, drain: a finished free may serve this request.
    if (allocation == nullptr) frees_->Drain();
  }
  if (allocation == nullptr) {
    allocation = underlying()->TryAllocate(request, failure);
  }
  if (allocation == nullptr) return nullptr;
  const Status status = order_->OrderAfterOthers(
      *share_, SharedOrder::LaneOf(*allocation->block()));
  if (status == Status::kSuccess) return allocation;
  // This stream has not used the memory, so there is no free to note.
  underlying()->DoFree(allocation);
  failure = Refusal(
      status == Status::kMemoryAllocation ? Failure::Reason::kHostMemory
                                          : Failure::Reason::kDevice,
      request, "cannot wait for the stream that used the memory before");
  failure.status = status;
  return nullptr;
}

Allocation* StreamView::TakeAtLast(const Request& request,
                                   Failure& failure) noexcept {
  if (busy_ == nullptr || !failure.IsExhaustion()) return nullptr;
  if (frees_->FreeOrdered() != 0) {
    Allocation* const allocation = TakeFromStrategy(request, failure);
    if (allocation != nullptr) return allocation;
  }
  // If no further free can serve the request, it takes a block that is too
  // large.
  if (!IsDuringCapture() && (request.flags & kNoRetry) == 0) return nullptr;
  Block* const block = busy_->Take(request, /*may_waste=*/true);
  return block != nullptr ? block->allocation() : nullptr;
}

Allocation* StreamView::TryAllocate(const Request& request,
                                    Failure& failure) noexcept {
  order_->Activate(*share_);
  Block* const own = busy_ != nullptr ? busy_->Take(request) : nullptr;
  Allocation* allocation =
      own != nullptr ? own->allocation() : TakeFromStrategy(request, failure);
  if (allocation == nullptr) allocation = TakeAtLast(request, failure);
  const std::lock_guard<ChainLock> guard(lock_);
  if (allocation == nullptr) {
    ++failures_;
    return nullptr;
  }
  allocation->block()->requested = request.unpadded_bytes();
  uses_.Count(*allocation->block());
  return allocation;
}

void StreamView::DoFree(Allocation* allocation) noexcept {
  Block* block = allocation->block();
  CheckLive(*block, name());
  {
    const std::lock_guard<ChainLock> guard(lock_);
    uses_.Uncount(*block);
  }
  const bool is_event_due = busy_ != nullptr && busy_->IsEventDue();
  if (!IsDirect() && busy_->Add(block)) {
    if (is_event_due) timeline_->Close();
    return;
  }
  order_->NoteFree(*share_, SharedOrder::LaneOf(*block));
  underlying()->DoFree(allocation);
}

std::size_t StreamView::Release() noexcept {
  if (frees_ != nullptr) frees_->Await();
  return underlying()->Release();
}

Stats StreamView::stats() const {
  const std::lock_guard<ChainLock> guard(lock_);
  Stats stats;
  stats.failures = failures_;
  uses_.FillIn(stats);
  return stats;
}

void StreamView::ResetPeak() {
  {
    const std::lock_guard<ChainLock> guard(lock_);
    uses_.ResetPeak();
  }
  underlying()->ResetPeak();
}

}  // namespace strata
