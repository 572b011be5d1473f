#ifndef STRATA_PLATFORM_SIM_VECTOR_CLOCK_H_
#define STRATA_PLATFORM_SIM_VECTOR_CLOCK_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "strata/platform/require_cxx20.h"

namespace strata {

// How much of each stream's work comes before something: for each stream, named
// by its key, how many of its first pieces. A stream that is not named: none.
//
// Threads: externally synchronised.
// Cost: Join is linear in both, the others in the logarithm; memory is taken
//   only when a stream is named for the first time.
// Source: cuda_semantics.md §5.4.
class VectorClock {
 public:
  std::uint64_t At(std::uint64_t key) const;
  // At(key) becomes at least `count`.
  void Raise(std::uint64_t key, std::uint64_t count);
  // Each becomes the larger of the two.
  void Join(const VectorClock& other);
  // At(key) becomes 0 for each key that `is_gone` returns true for. Linear.
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

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_VECTOR_CLOCK_H_
