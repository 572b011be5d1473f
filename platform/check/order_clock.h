#ifndef STRATA_PLATFORM_CHECK_ORDER_CLOCK_H_
#define STRATA_PLATFORM_CHECK_ORDER_CLOCK_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "strata/platform/require_cxx20.h"

namespace strata {

// One operation: the `count`-th of its component, a stream or a chain of nodes
// of a graph. Count 0 is before everything.
struct Epoch {
  std::uint32_t component = 0;
  std::uint64_t count = 0;

  friend bool operator==(const Epoch&, const Epoch&) = default;
};

// How many of the first operations of each component come before something.
//
// Threads: externally synchronised.
// Cost: Join is linear in the components, the rest constant. The simulator's
//   VectorClock names streams by their uids; here they are few and dense.
// Source: cuda_semantics.md §5.4.
class OrderClock {
 public:
  std::uint64_t At(std::uint32_t component) const {
    return component < counts_.size() ? counts_[component] : 0;
  }
  // Whether the operation comes before what this is the clock of.
  bool Covers(const Epoch& epoch) const {
    return At(epoch.component) >= epoch.count;
  }
  // At(component) becomes at least `count`.
  void Raise(std::uint32_t component, std::uint64_t count);
  // Each becomes the larger of the two. Returns whether any changed.
  bool Join(const OrderClock& other);

  std::size_t size() const { return counts_.size(); }

 private:
  std::vector<std::uint64_t> counts_;  // by component
};

}  // namespace strata

#endif  // STRATA_PLATFORM_CHECK_ORDER_CLOCK_H_
