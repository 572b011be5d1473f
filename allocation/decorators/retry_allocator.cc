#include "strata/allocation/decorators/retry_allocator.h"

#include <utility>

#include "strata/allocation/decorators/registry.h"

namespace strata {

RetryAllocator::RetryAllocator(std::shared_ptr<Allocator> underlying)
    : Decorator(std::move(underlying)),
      ladder_(Decorator::underlying()->reclaimer()) {}

void RetryAllocator::Notify(std::size_t bytes) noexcept {
  if (ladder_ != nullptr) ladder_->retry().NotifyFree(bytes);
}

Allocation* RetryAllocator::TryAllocate(const Request& request,
                                        Failure& failure) noexcept {
  if (ladder_ != nullptr) ladder_->retry().CountThread();
  Allocation* allocation = underlying()->TryAllocate(request, failure);
  // A layer below may have allocated memory and freed it again.
  if (allocation == nullptr && failure.reason == Failure::Reason::kDevice) {
    Notify(request.bytes);
  }
  return allocation;
}

void RetryAllocator::DoFree(Allocation* allocation) noexcept {
  if (ladder_ != nullptr) ladder_->retry().CountThread();
  const std::size_t bytes = allocation->block()->size;
  underlying()->DoFree(allocation);
  Notify(bytes);
}

std::size_t RetryAllocator::Release() noexcept {
  const std::size_t bytes = underlying()->Release();
  if (bytes != 0) Notify(0);
  return bytes;
}

std::shared_ptr<Allocator> MakeRetryAllocator(
    std::shared_ptr<Allocator> underlying, const DecoratorOptions& options,
    const ChainContext& /*context*/) {
  // The free memory of the host is not ours, so no request waits for it.
  if (options.retry_time_ms <= 0 ||
      underlying->place().kind == PlaceKind::kHost) {
    return underlying;
  }
  return std::make_shared<RetryAllocator>(std::move(underlying));
}

}  // namespace strata
