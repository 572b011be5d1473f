#include "strata/allocation/decorators/stat_allocator.h"

#include <mutex>
#include <utility>

#include "strata/allocation/decorators/registry.h"

namespace strata {

StatAllocator::StatAllocator(std::shared_ptr<Allocator> underlying,
                             std::shared_ptr<ChainStream> stream,
                             std::shared_ptr<PlacePeak> peak)
    : Decorator(std::move(underlying)),
      stream_(stream != nullptr ? std::move(stream)
                                : std::make_shared<ChainStream>()),
      peak_(std::move(peak)),
      state_(stream_->state()) {
  state_.has_stat_layer = true;
  if (peak_ != nullptr) peak_->Add(state_);
}

StatAllocator::~StatAllocator() {
  if (peak_ != nullptr) peak_->Remove(state_);
}

Allocation* StatAllocator::TryAllocate(const Request& request,
                                       Failure& failure) noexcept {
  Allocation* allocation = underlying()->TryAllocate(request, failure);
  state_.lock.lock();
  if (allocation == nullptr) {
    ++failures_;
    state_.lock.unlock();
    return nullptr;
  }
  state_.Count(*allocation->block());
  state_.EndCount();
  return allocation;
}

void StatAllocator::DoFree(Allocation* allocation) noexcept {
  {
    const std::lock_guard<ChainLock> guard(state_.lock);
    state_.counts.Uncount(*allocation->block());
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
    state_.counts.RaisePeak(state_.allowance_bytes);
  }
  underlying()->ResetPeak();
}

std::shared_ptr<Allocator> MakeStatAllocator(
    std::shared_ptr<Allocator> underlying, const DecoratorOptions& options,
    const ChainContext& context) {
  if (!options.stat) return underlying;
  // Red zones and the quarantine of the guard are in use here, but not in its
  // statistics.
  const bool counts_place = !options.guard || options.exact_peak;
  return std::make_shared<StatAllocator>(
      std::move(underlying), context.stream,
      counts_place
          ? context.Shared<PlacePeak>(ServiceScope::kPlace, options.exact_peak)
          : nullptr);
}

}  // namespace strata
