#include "strata/allocation/decorators/stat_allocator.h"

#include <mutex>
#include <utility>

#include "strata/allocation/decorators/registry.h"

namespace strata {
namespace {

HitState& StateOf(HitPath* hit_path, std::unique_ptr<HitState>& own,
                  bool biased_lock) {
  HitState* state = hit_path != nullptr ? hit_path->hit_state() : nullptr;
  return state != nullptr ? *state
                          : *(own = std::make_unique<HitState>(biased_lock));
}

}  // namespace

void PlaceMeter::Add(std::uint64_t bytes) {
  StoreMax(peak_in_use_bytes_, in_use_bytes_ += bytes);
}

StatAllocator::StatAllocator(std::shared_ptr<Allocator> underlying,
                             std::shared_ptr<PlaceMeter> meter,
                             bool biased_lock)
    : Decorator(std::move(underlying)),
      meter_(std::move(meter)),
      hit_(StateOf(Decorator::underlying()->hit_path(), own_, biased_lock)) {}

Allocation* StatAllocator::TryAllocate(const Request& request,
                                       Failure& failure) noexcept {
  Allocation* allocation = underlying()->TryAllocate(request, failure);
  const std::lock_guard<ChainLock> guard(hit_.lock);
  if (allocation != nullptr) {
    Count(*allocation->block());
  } else {
    ++failures_;
  }
  return allocation;
}

void StatAllocator::DoFree(Allocation* allocation) noexcept {
  {
    const std::lock_guard<ChainLock> guard(hit_.lock);
    Uncount(*allocation->block());
  }
  underlying()->DoFree(allocation);
}

Stats StatAllocator::stats() const {
  const std::lock_guard<ChainLock> guard(hit_.lock);
  Stats stats;
  stats.failures = failures_;
  hit_.counts.FillIn(stats);
  return stats;
}

void StatAllocator::ResetPeak() {
  {
    const std::lock_guard<ChainLock> guard(hit_.lock);
    hit_.counts.ResetPeak();
  }
  underlying()->ResetPeak();
}

std::shared_ptr<Allocator> MakeStatAllocator(
    std::shared_ptr<Allocator> underlying, const DecoratorOptions& options,
    const ChainContext& context) {
  if (!options.stat) return underlying;
  return std::make_shared<StatAllocator>(
      std::move(underlying),
      options.exact_peak ? context.Shared<PlaceMeter>(ServiceScope::kPlace)
                         : nullptr,
      options.biased_lock());
}

}  // namespace strata
