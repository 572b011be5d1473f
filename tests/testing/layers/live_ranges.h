#ifndef STRATA_TESTS_TESTING_LAYERS_LIVE_RANGES_H_
#define STRATA_TESTS_TESTING_LAYERS_LIVE_RANGES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "strata/allocation/allocation.h"

namespace strata {

// A map of the allocated memory, for memory that cannot hold a pattern. It
// detects that one byte is allocated twice.
//
// Threads: any thread. Call Remove before the free, and Add after the
//   allocation.
class LiveRanges {
 public:
  // Returns false, without a change, if the map already contains a byte of the
  // allocation.
  [[nodiscard]] bool Add(const Allocation& allocation) {
    const auto begin = reinterpret_cast<std::uintptr_t>(allocation.data());
    const std::uintptr_t end = begin + allocation.size();
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto after = ranges_.lower_bound(begin);
    if (after != ranges_.end() && after->first < end) return false;
    if (after != ranges_.begin()) {
      auto before = after;
      if ((--before)->second > begin) return false;
    }
    ranges_.emplace_hint(after, begin, end);
    bytes_ += allocation.size();
    return true;
  }

  // Returns false if the map does not contain exactly this range.
  [[nodiscard]] bool Remove(const Allocation& allocation) {
    const auto begin = reinterpret_cast<std::uintptr_t>(allocation.data());
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto range = ranges_.find(begin);
    if (range == ranges_.end() || range->second != begin + allocation.size()) {
      return false;
    }
    ranges_.erase(range);
    bytes_ -= allocation.size();
    return true;
  }

  std::size_t count() const {
    const std::lock_guard<std::mutex> guard(mutex_);
    return ranges_.size();
  }
  std::size_t bytes() const {
    const std::lock_guard<std::mutex> guard(mutex_);
    return bytes_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::uintptr_t, std::uintptr_t> ranges_;  // begin to end
  std::size_t bytes_ = 0;
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_LAYERS_LIVE_RANGES_H_
