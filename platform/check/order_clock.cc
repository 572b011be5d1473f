#include "strata/platform/check/order_clock.h"

#include <algorithm>

namespace strata::check {

void OrderClock::Raise(std::uint32_t component, std::uint64_t count) {
  if (count == 0) return;
  if (component >= counts_.size()) counts_.resize(component + std::size_t{1});
  counts_[component] = std::max(counts_[component], count);
}

bool OrderClock::Join(const OrderClock& other) {
  if (other.counts_.size() > counts_.size()) {
    counts_.resize(other.counts_.size());
  }
  bool changed = false;
  for (std::size_t i = 0; i < other.counts_.size(); ++i) {
    if (counts_[i] >= other.counts_[i]) continue;
    counts_[i] = other.counts_[i];
    changed = true;
  }
  return changed;
}

}  // namespace strata::check
