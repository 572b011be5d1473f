#include "strata/allocation/decorators/stat_allocator.h"

#include <mutex>
#include <utility>

#include "strata/allocation/decorators/registry.h"

namespace strata {

StatAllocator::StatAllocator(std::shared_ptr<Allocator> underlying,
                             std::shared_ptr<ChainStream> stream,
                             std::shared_ptr<PlaceMeter> meter)
    : Decorator(std::move(underlying)),
      stream_(stream != nullptr ? std::move(stream)
                                : std::make_shared<ChainStream>()),
      meter_(std::move(meter)),
      state_(stream_->state()) {
  state_.has_stat_layer = true;
  state_.meter = meter_.get();
}

Allocation* StatAllocator::TryAllocate(const Request& request,
                                       Failure& failure) noexcept {
  Allocation* allocation = underlying()->TryAllocate(request, failure);
  const std::lock_guard<ChainLock> guard(state_.lock);
  if (allocation != nullptr) {
    state_.Count(*allocation->block());
  } else {
    ++failures_;
  }
  return allocation;
}

void StatAllocator::DoFree(Allocation* allocation) noexcept {
  {
    const std::lock_guard<ChainLock> guard(state_.lock);
    state_.Uncount(*allocation->block());
  }
  underlying()->DoFree(allocation);
}

Stats StatAllocator::stats() const {
  const std::lock_guard<ChainLock> guard(state_.lock);
  Stats stats;
  stats.failures = failures_;
  state_.counts.FillIn(stats);
  return stats;
}

void StatAllocator::ResetPeak() {
  {
    const std::lock_guard<ChainLock> guard(state_.lock);
    state_.counts.ResetPeak();
  }
  underlying()->ResetPeak();
}

std::shared_ptr<Allocator> MakeStatAllocator(
    std::shared_ptr<Allocator> underlying, const DecoratorOptions& options,
    const ChainContext& context) {
  if (!options.stat) return underlying;
  return std::make_shared<StatAllocator>(
      std::move(underlying), context.stream,
      options.exact_peak ? context.Shared<PlaceMeter>(ServiceScope::kPlace)
                         : nullptr);
}

}  // namespace strata
