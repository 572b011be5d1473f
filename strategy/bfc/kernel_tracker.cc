#include "strata/strategy/bfc/kernel_tracker.h"

#include <algorithm>
#include <utility>

namespace strata {
namespace {

// Fewest bytes with the weight of one kernel (R41).
constexpr std::size_t kLeastBytesPerWeight = 16386;

}  // namespace

KernelTracker::KernelTracker(const Rules& rules,
                             std::shared_ptr<SharedCounter> counter)
    : rules_(rules), counter_(std::move(counter)) {}

std::optional<std::uint64_t> KernelTracker::Launched(std::size_t bytes) {
  const std::lock_guard<std::mutex> guard(mutex_);
  ++since_last_;
  bytes_since_last_ += bytes;
  const bool has_rule = rules_.most_interval > 0 || rules_.most_bytes > 0;
  const bool is_due =
      !has_rule ||
      (rules_.most_interval > 0 && since_last_ >= rules_.most_interval) ||
      (rules_.most_bytes > 0 && bytes_since_last_ >= rules_.most_bytes);
  if (!is_due) return std::nullopt;
  std::size_t weight = 1;
  if (rules_.most_bytes > 0) {
    weight = std::max<std::size_t>(
        1,
        bytes_since_last_ / std::max(kLeastBytesPerWeight, rules_.most_bytes));
  }
  if (rules_.most_pending > 0) {
    weight = std::min(weight, static_cast<std::size_t>(rules_.most_pending));
  } else {
    weight = 1;  // Not used.
  }
  since_last_ = 0;
  bytes_since_last_ = 0;
  const Kernel kernel{counter_->Next(), static_cast<int>(weight), false};
  kernels_.push_back(kernel);
  pending_weight_ += kernel.weight;
  return kernel.count;
}

std::uint64_t KernelTracker::Terminated(std::uint64_t count) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto kernel =
      std::lower_bound(kernels_.begin(), kernels_.end(), count,
                       [](const Kernel& one, std::uint64_t wanted) {
                         return one.count < wanted;
                       });
  if (kernel == kernels_.end() || kernel->count != count || kernel->is_done) {
    return frontier_;
  }
  kernel->is_done = true;
  pending_weight_ -= kernel->weight;
  while (!kernels_.empty() && kernels_.front().is_done) {
    frontier_ = kernels_.front().count;
    kernels_.pop_front();
  }
  return frontier_;
}

std::uint64_t KernelTracker::frontier() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return frontier_;
}

bool KernelTracker::HasTooMany() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return rules_.most_pending > 0 && pending_weight_ > rules_.most_pending;
}

}  // namespace strata
