#include "strata/facade/chains/chain.h"

#include <mutex>
#include <utility>

#include "strata/allocation/system/device_allocator.h"
#include "strata/base/log.h"
#include "strata/platform/device.h"

namespace strata {

Chain::Chain(const Services& services, std::shared_ptr<ChainStream> stream,
             std::shared_ptr<Allocator> layers, Role role)
    : Decorator(std::move(layers)),
      gate_(services.gate),
      retry_(services.retry),
      hit_path_(underlying()->hit_path()),
      home_(services.home),
      stream_(std::move(stream)),
      device_(services.device),
      role_(role),
      hit_(stream_->state()) {
  STRATA_LOG_IF(Fatal, hit_path_ != nullptr &&
                           hit_path_->hit_lock() != nullptr &&
                           hit_path_->hit_lock() != &hit_.lock)
      << underlying()->name() << ": the hit path has the lock of another chain";
}

Allocation* Chain::WalkGated(const Request& request,
                             Failure& failure) noexcept {
  const CaptureGate::RelaxedScope scope(gate_, device_);
  if (!scope) {
    failure = Refusal(Failure::Reason::kDevice, request,
                      "cannot relax the thread's capture mode");
    failure.status = Status::kNotReady;
    failure.during_capture = true;
    return nullptr;
  }
  Allocation* allocation = nullptr;
  bool is_captured = false;
  if (role_ == Role::kEager) {
    allocation =
        home_->TryAllocateCaptured(stream(), request, failure, &is_captured);
  }
  if (!is_captured) allocation = Walk(request, failure);
  if (allocation == nullptr) failure.during_capture = true;
  return allocation;
}

bool Chain::CanServe(const Request& request, Failure& failure) const noexcept {
  std::uint32_t unserved = 0;
  for (const Allocator* layer = this; layer != nullptr;
       layer = layer->underlying()) {
    unserved |= layer->unserved_flags();
  }
  unserved &= request.flags;
  if (unserved == 0) return true;
  failure = Refusal(Failure::Reason::kBadRequest, request,
                    (unserved & kOneHandle) != 0
                        ? "this strategy gives no allocation a handle"
                        : "memory of this strategy is unknown to "
                          "cudaIpcGetMemHandle");
  return false;
}

Allocation* Chain::Walk(const Request& request, Failure& failure) noexcept {
  // The first request of a chain is no hit, so it runs this line.
  was_used_.store(true, std::memory_order_relaxed);
  if ((request.flags & (kOneHandle | kLegacyIpc)) != 0 &&
      !CanServe(request, failure)) {
    return nullptr;
  }
  Allocation* allocation = underlying()->TryAllocate(request, failure);
  if (allocation == nullptr) {
    Explain(request, failure);
  } else if (counts_itself()) {
    const std::lock_guard<ChainLock> guard(hit_.lock);
    live_.Count(*allocation->block());
  }
  return allocation;
}

void Chain::Explain(const Request& request, Failure& failure) const noexcept {
  // A limit refuses without a device call. Advice on the limit needs the free
  // bytes of the device.
  if (failure.reason == Failure::Reason::kLimit && device_ != nullptr &&
      place().kind == PlaceKind::kDevice) {
    AddDeviceMemory(*device_, failure);
  }
  // The count acquires the lock of every stream: skip it for requests that only
  // try.
  if (failure.IsExhaustion() && (request.flags & kNoRetry) == 0) {
    home_->Explain(failure);
  }
}

void Chain::EndFree(std::size_t bytes) noexcept {
  if (retry_.has_waiters()) {
    // This chain must live until the waiters are notified.
    ++pins_;
    hit_.lock.unlock();
    retry_.NotifyFree(bytes);
    return Unpin();
  }
  UnlockOrEnd();
}

void Chain::WalkFree(Allocation* allocation) noexcept {
  // If a capture is announced, the scope below ends after this chain.
  const bool is_gated = gate_.any();
  const std::shared_ptr<Home> held = is_gated ? home_ : nullptr;
  const CaptureGate::RelaxedScope scope(gate_, is_gated ? device_ : nullptr);
  {
    // Pin the chain until the layers have completed the free; the Stat layer
    // uncounts it earlier.
    const std::lock_guard<ChainLock> guard(hit_.lock);
    ++pins_;
    if (counts_itself()) live_.Uncount(*allocation->block());
  }
  const std::size_t bytes = allocation->size();
  underlying()->DoFree(allocation);
  // The layers notify the graph pool's queue, but the budget belongs to the
  // place.
  if (role_ == Role::kGraph) retry_.NotifyFree(bytes);
  Unpin();
}

bool Chain::RecordStream(Allocation* allocation, Stream stream) noexcept {
  home_->HeedEnd(*this, stream);
  return Decorator::RecordStream(allocation, stream);
}

bool Chain::RecordUse(Allocation* allocation, Stream stream,
                      Event event) noexcept {
  home_->HeedEnd(*this, stream);
  return Decorator::RecordUse(allocation, stream, event);
}

Stats Chain::stats() const {
  if (!hit_.has_stat_layer) {
    // An inner layer may count for many chains.
    Stats stats;
    const std::lock_guard<ChainLock> guard(hit_.lock);
    live_.FillIn(stats);
    return stats;
  }
  const CaptureGate::RelaxedScope scope(gate_, device_);
  return Decorator::stats();
}

void Chain::ResetPeak() {
  if (!hit_.has_stat_layer) {
    const std::lock_guard<ChainLock> guard(hit_.lock);
    live_.ResetPeak();
  }
  Decorator::ResetPeak();
}

void Chain::Accept(AllocatorVisitor& visitor) const {
  const CaptureGate::RelaxedScope scope(gate_, device_);
  Decorator::Accept(visitor);
}

bool Chain::TryPin() noexcept {
  const std::lock_guard<ChainLock> guard(hit_.lock);
  if (is_over()) return false;
  ++pins_;
  return true;
}

void Chain::Unpin() noexcept {
  hit_.lock.lock();
  --pins_;
  UnlockOrEnd();
}

void Chain::Drop() noexcept {
  hit_.lock.lock();
  orphan_ = true;
  hit_.attention = &ChainState::kNeverPlain;
  hit_.lock.Close();
  UnlockOrEnd();
}

void Chain::UnlockOrEnd() noexcept {
  const bool is_last = is_over();
  hit_.lock.unlock();
  if (is_last) Destroy();
}

void Chain::Destroy() noexcept {
  // The gate must outlive the call, which may destroy this chain.
  const std::shared_ptr<Home> held = home_;
  // Add the totals now, even if End has to wait: no later call counts them.
  held->Finish(*this, stats());
  gate_.EndLater(*this);
}

void Chain::End() noexcept {
  // The home must outlive this chain, which refers to it.
  const std::shared_ptr<Home> home = home_;
  delete this;
  home->ReleaseIfClosed();
}

}  // namespace strata
