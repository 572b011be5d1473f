#include "strata/allocation/decorators/limit_allocator.h"

#include <utility>

#include "strata/allocation/decorators/registry.h"

namespace strata {
namespace {

// A reservation in a budget. The destructor undoes it unless Commit() was
// called.
class Reservation {
 public:
  Reservation(Budget& budget, std::size_t bytes)
      : budget_(budget), bytes_(bytes), held_(budget.Reserve(bytes)) {}
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  ~Reservation() { Undo(); }

  bool held() const { return held_; }
  void Commit() { held_ = false; }
  void Undo() {
    if (std::exchange(held_, false)) budget_.Return(bytes_);
  }

 private:
  Budget& budget_;
  const std::size_t bytes_;
  bool held_;
};

}  // namespace

bool Budget::Reserve(std::size_t bytes) {
  std::size_t in_use = in_use_bytes_;
  do {
    if (in_use > limit_bytes_ || bytes > limit_bytes_ - in_use) return false;
  } while (!in_use_bytes_.compare_exchange_weak(in_use, in_use + bytes));
  return true;
}

LimitAllocator::LimitAllocator(std::shared_ptr<Allocator> underlying,
                               std::shared_ptr<Budget> budget)
    : Decorator(std::move(underlying)),
      budget_(std::move(budget)),
      ladder_(Decorator::underlying()->reclaimer()) {}

Allocation* LimitAllocator::TryAllocate(const Request& request,
                                        Failure& failure) noexcept {
  Reservation reservation(*budget_, request.bytes);
  if (!reservation.held()) {
    ++failures_;
    failure = Refusal(Failure::Reason::kBudget, request);
    failure.rounded_bytes = request.bytes;
    failure.in_use_bytes = budget_->in_use_bytes();
    failure.limit_bytes = budget_->limit_bytes();
    failure.limit_flag = kInUseLimitFlag;
    return nullptr;
  }
  Allocation* allocation = underlying()->TryAllocate(request, failure);
  if (allocation != nullptr) {
    reservation.Commit();
    held_bytes_ += request.bytes;
    return allocation;
  }
  reservation.Undo();
  // The budget may have refused another request meanwhile.
  if (ladder_ != nullptr) {
    ladder_->retry().NotifyReturn(request.bytes, Failure::Reason::kBudget);
  }
  return nullptr;
}

void LimitAllocator::DoFree(Allocation* allocation) noexcept {
  const std::size_t bytes = allocation->requested_bytes();
  underlying()->DoFree(allocation);
  held_bytes_ -= bytes;
  budget_->Return(bytes);
  // The layers below notified the queue before this budget was returned.
  if (ladder_ != nullptr) ladder_->retry().NotifyFree(bytes);
}

Stats LimitAllocator::stats() const {
  Stats stats;
  stats.requested_bytes = held_bytes_;
  LimitInUse(stats, budget_->limit_bytes());
  stats.failures = failures_;
  return stats;
}

std::shared_ptr<Allocator> MakeLimitAllocator(
    std::shared_ptr<Allocator> underlying, const DecoratorOptions& options,
    const ChainContext& context) {
  if (options.in_use_limit_bytes == 0) return underlying;
  return std::make_shared<LimitAllocator>(
      std::move(underlying),
      context.Shared<Budget>(ServiceScope::kPlace, options.in_use_limit_bytes));
}

}  // namespace strata
