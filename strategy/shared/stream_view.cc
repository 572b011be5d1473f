#include "strata/strategy/shared/stream_view.h"

#include <mutex>
#include <optional>
#include <utility>

namespace strata {
namespace {

std::shared_ptr<ParkedFrees> MakeParked(
    const std::shared_ptr<Allocator>& strategy, const ChainStream& stream,
    const std::shared_ptr<DeferredFrees>& frees, const StreamView& view,
    ChainLock& lock) {
  if (frees == nullptr || stream.timeline() == nullptr) return nullptr;
  auto parked = std::make_shared<ParkedFrees>(
      *frees, strategy, stream.shared_timeline(), view, lock);
  frees->AddSource(parked);
  return parked;
}

}  // namespace

StreamView::StreamView(std::shared_ptr<Allocator> strategy,
                       std::shared_ptr<SharedOrder> order,
                       std::shared_ptr<ChainStream> stream,
                       std::shared_ptr<DeferredFrees> frees, bool biased_lock)
    : Decorator(strategy),
      HitPath(biased_lock),
      below_(strategy->hit_path()),
      shared_lock_(below_ != nullptr ? below_->shared_lock() : nullptr),
      locks_by_itself_(below_ != nullptr && below_->hit_lock() == nullptr),
      order_(std::move(order)),
      share_(order_->Join(std::move(stream))),
      frees_(std::move(frees)),
      timeline_(share_->stream().timeline()),
      waits_on_device_(frees_ != nullptr && frees_->waits_on_device()),
      parked_(MakeParked(strategy, share_->stream(), frees_, *this, lock_)) {}

StreamView::~StreamView() {
  if (parked_ != nullptr) parked_->Leave();
  order_->Leave(*share_);
  if (shared_lock_ != nullptr && shared_lock_->IsLentTo(lock_)) {
    shared_lock_->TakeBack();
  }
}

void StreamView::ShareLock() noexcept {
  if (shared_lock_ == nullptr) return;
  if (order_->several()) {
    shared_lock_->TakeBack();
  } else {
    shared_lock_->LendTo(lock_);
  }
}

// Inline, because they are most of a hit.

inline bool StreamView::IsAlone() const noexcept {
  return IsLockEnough() &&
         (parked_ == nullptr ||
          (!timeline_->during_capture() && parked_->empty() && !ParksAll()));
}

inline Block* StreamView::TakeBelow(std::size_t bytes) noexcept {
  Block* const block = below_->Take(bytes);
  if (block == nullptr) return nullptr;
  // After Take, so that the free of this block has been noted.
  if (!order_->IsOrdered(*share_)) [[unlikely]] {
    below_->Give(block);
    return nullptr;
  }
  block->requested = bytes;
  return block;
}

[[gnu::noinline]] Block* StreamView::TakeAmongOthers(
    std::size_t bytes) noexcept {
  // The first request takes the full path.
  if (!order_->IsActive(*share_) || IsDuringCapture()) return nullptr;
  // Parked blocks first.
  if (parked_ != nullptr && !parked_->empty()) {
    if (Block* const block = parked_->TakeHeld(Request{bytes})) return block;
  }
  // The full path makes room. Without room, frees could not be parked.
  if (ParksAll() && parked_->room() <= uses_.live_allocations()) {
    return nullptr;
  }
  std::optional<HitGuard> guard;
  if (!IsLockEnough()) guard.emplace(*below_);
  return TakeBelow(bytes);
}

[[gnu::noinline]] bool StreamView::GiveAmongOthers(Block* block) noexcept {
  if (!IsDirect()) {
    // After Close, each free has to drain on the full path.
    return !IsDuringCapture() && !frees_->is_closed() &&
           parked_->ParkHeld(block);
  }
  order_->NoteFree(*share_);
  std::optional<HitGuard> guard;
  if (!IsLockEnough()) guard.emplace(*below_);
  return below_->Give(block);
}

Block* StreamView::TakeCached(std::size_t bytes) noexcept {
  Block* const block = IsAlone() ? TakeBelow(bytes) : TakeAmongOthers(bytes);
  if (block != nullptr) uses_.Count(*block);
  return block;
}

bool StreamView::GiveCached(Block* block) noexcept {
  uses_.Uncount(*block);
  bool is_given = false;
  if (IsAlone()) {
    order_->NoteFree(*share_);
    is_given = below_->Give(block);
  } else {
    is_given = GiveAmongOthers(block);
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
  const Status status = order_->OrderAfterOthers(*share_);
  if (status == Status::kSuccess) return allocation;
  // This stream has not used the memory, so there is no free to note.
  underlying()->DoFree(allocation);
  failure = Failure();
  failure.reason = status == Status::kMemoryAllocation
                       ? Failure::Reason::kHostMemory
                       : Failure::Reason::kDevice;
  failure.layer = name();
  failure.detail = "cannot wait for the stream that used the memory before";
  failure.place = place();
  failure.status = status;
  failure.requested_bytes = request.bytes;
  return nullptr;
}

Allocation* StreamView::Take(const Request& request,
                             Failure& failure) noexcept {
  order_->Activate(*share_);
  ShareLock();
  if (parked_ != nullptr) {
    Block* block = parked_->Take(request);
    if (block != nullptr) return block->allocation();
  }
  Allocation* const allocation = TakeFromStrategy(request, failure);
  // No further free will serve the request, so it takes a block that is too
  // large.
  if (allocation == nullptr && parked_ != nullptr && failure.IsExhaustion() &&
      (IsDuringCapture() || (request.flags & kNoRetry) != 0)) {
    Block* block = parked_->TakeAny(request);
    if (block != nullptr) return block->allocation();
  }
  return allocation;
}

Allocation* StreamView::TryAllocate(const Request& request,
                                    Failure& failure) noexcept {
  Allocation* allocation = Take(request, failure);
  std::uint64_t live = 0;
  {
    const std::lock_guard<ChainLock> guard(lock_);
    if (allocation != nullptr) {
      allocation->block()->requested = request.unpadded_bytes();
      uses_.Count(*allocation->block());
    } else {
      ++failures_;
    }
    live = uses_.live_allocations();
  }
  // Without room, frees could not be parked.
  if (parked_ != nullptr && (order_->several() || !IsDirect()) &&
      parked_->room() < live) {
    parked_->Reserve(live);
  }
  return allocation;
}

void StreamView::DoFree(Allocation* allocation) noexcept {
  Block* block = allocation->block();
  CheckLive(*block, name());
  {
    const std::lock_guard<ChainLock> guard(lock_);
    uses_.Uncount(*block);
  }
  if (!IsDirect() && parked_->Park(block)) return;
  order_->NoteFree(*share_);
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
