#include "strata/strategy/stream_view.h"

#include <mutex>
#include <utility>

#include "strata/allocation/usage.h"

namespace strata {

StreamView::StreamView(std::shared_ptr<Allocator> strategy,
                       std::shared_ptr<SharedOrder> order,
                       std::shared_ptr<ChainStream> stream)
    : Decorator(std::move(strategy)),
      order_(std::move(order)),
      share_(order_->Join(std::move(stream))) {}

Allocation* StreamView::TryAllocate(const Request& request,
                                    Failure& failure) noexcept {
  Allocation* allocation = underlying()->TryAllocate(request, failure);
  if (allocation != nullptr) {
    const Status status = order_->OrderAfterOthers(*share_);
    if (status != Status::kSuccess) {
      // This stream has not used it, so there is nothing to note.
      underlying()->DoFree(allocation);
      allocation = nullptr;
      failure = Failure();
      failure.reason = Failure::Reason::kDevice;
      failure.layer = name();
      failure.detail = "cannot wait for the stream that used the memory before";
      failure.place = place();
      failure.status = status;
      failure.requested_bytes = request.bytes;
    }
  }
  const std::lock_guard<SpinLock> guard(lock_);
  if (allocation != nullptr) {
    CountUse(stats_, *allocation->block());
  } else {
    ++stats_.failures;
  }
  return allocation;
}

void StreamView::DoFree(Allocation* allocation) noexcept {
  CheckLive(*allocation->block(), name());
  {
    const std::lock_guard<SpinLock> guard(lock_);
    UncountUse(stats_, *allocation->block());
  }
  order_->NoteFree(*share_);
  underlying()->DoFree(allocation);
}

Stats StreamView::stats() const {
  const std::lock_guard<SpinLock> guard(lock_);
  return stats_;
}

void StreamView::ResetPeak() {
  {
    const std::lock_guard<SpinLock> guard(lock_);
    stats_.peak_in_use_bytes = stats_.in_use_bytes;
  }
  underlying()->ResetPeak();
}

}  // namespace strata
