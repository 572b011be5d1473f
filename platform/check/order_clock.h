#ifndef STRATA_PLATFORM_CHECK_ORDER_CLOCK_H_
#define STRATA_PLATFORM_CHECK_ORDER_CLOCK_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "strata/base/require_cxx20.h"

namespace strata::check {

// One operation: the `count`-th operation of its component. A component is a
// stream or a chain of graph nodes. Count 0 is before every operation.
struct Epoch {
  std::uint32_t component = 0;
  std::uint64_t count = 0;

  friend bool operator==(const Epoch&, const Epoch&) = default;
};

// A set of operations: for each component the number of its first operations
// that are in the set.
//
// Threads: externally synchronised.
// Cost: Join is linear in the components, the rest constant. Components
//   are few and dense numbers, unlike the uids in the simulator's VectorClock.
// Source: cuda_semantics.md §5.4.
class OrderClock {
 public:
  std::uint64_t At(std::uint32_t component) const {
    return component < counts_.size() ? counts_[component] : 0;
  }
  // True if the operation is in the set.
  bool Covers(const Epoch& epoch) const {
    return At(epoch.component) >= epoch.count;
  }
  // Raises At(component) to at least `count`.
  void Raise(std::uint32_t component, std::uint64_t count) {
    if (count == 0) return;
    if (component >= counts_.size()) counts_.resize(component + std::size_t{1});
    counts_[component] = std::max(counts_[component], count);
  }
  // Raises each component to the larger value of the two clocks. Returns true
  // if any changed.
  bool Join(const OrderClock& other) {
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

  std::size_t size() const { return counts_.size(); }

 private:
  std::vector<std::uint64_t> counts_;  // by component
};

}  // namespace strata::check

#endif  // STRATA_PLATFORM_CHECK_ORDER_CLOCK_H_
