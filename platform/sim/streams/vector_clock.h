#ifndef STRATA_PLATFORM_SIM_STREAMS_VECTOR_CLOCK_H_
#define STRATA_PLATFORM_SIM_STREAMS_VECTOR_CLOCK_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "strata/base/require_cxx20.h"

namespace strata::sim {

// A set of operations: for each stream, named by its key, the number of its
// first operations in the set. Streams without entry: 0.
//
// Threads: externally synchronised.
// Cost: Join is linear in both clocks, the others are logarithmic. Memory is
//   allocated only at the first entry for a stream.
// Source: cuda_semantics.md §5.4.
class VectorClock {
 public:
  std::uint64_t At(std::uint64_t key) const;
  // Raises At(key) to at least `count`.
  void Raise(std::uint64_t key, std::uint64_t count);
  // Raises each entry to the larger value of the two clocks.
  void Join(const VectorClock& other);
  // Sets At(key) to 0 for each key for which `is_gone` returns true. Linear.
  template <class Predicate>
  void ForgetIf(Predicate is_gone) {
    std::erase_if(entries_,
                  [&](const Entry& entry) { return is_gone(entry.key); });
  }

  std::size_t size() const { return entries_.size(); }
  // The key of entry `index` < size(), in rising order.
  std::uint64_t KeyOf(std::size_t index) const { return entries_[index].key; }

 private:
  struct Entry {
    std::uint64_t key;
    std::uint64_t count;
  };

  std::vector<Entry> entries_;  // by key
};

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_STREAMS_VECTOR_CLOCK_H_
