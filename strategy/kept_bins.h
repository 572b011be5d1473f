#ifndef STRATA_STRATEGY_KEPT_BINS_H_
#define STRATA_STRATEGY_KEPT_BINS_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "strata/allocation/chunk_holder.h"

namespace strata {

// How many blocks of each large bin a chain keeps, for who looks for one
// without the chain's lock.
//
// Units: bytes, powers of two of at least kLeastBytes.
// Threads: changes by who has the lock of the chain; any() by everybody, who
//   may be told what is no more, or not yet, true.
class KeptBins {
 public:
  // Less is not worth the calls and the lock that it takes to fetch it.
  static constexpr std::size_t kLeastBytes = kSystemStepBytes;

  void Add(std::size_t bytes) noexcept { Change(bytes, 1); }
  void Remove(std::size_t bytes) noexcept { Change(bytes, UINT32_MAX); }
  bool any(std::size_t bytes) const noexcept {
    return counts_[IndexOf(bytes)].load(std::memory_order_relaxed) != 0;
  }
  bool empty() const noexcept {
    return std::all_of(counts_.begin(), counts_.end(), [](const auto& count) {
      return count.load(std::memory_order_relaxed) == 0;
    });
  }

 private:
  static constexpr int kLeastBits = std::countr_zero(kLeastBytes);

  static std::size_t IndexOf(std::size_t bytes) noexcept {
    return static_cast<std::size_t>(std::countr_zero(bytes) - kLeastBits);
  }
  void Change(std::size_t bytes, std::uint32_t by) noexcept {
    std::atomic<std::uint32_t>& count = counts_[IndexOf(bytes)];
    // Nobody else changes it.
    count.store(count.load(std::memory_order_relaxed) + by,
                std::memory_order_relaxed);
  }

  std::array<std::atomic<std::uint32_t>, 64 - kLeastBits> counts_{};
};

}  // namespace strata

#endif  // STRATA_STRATEGY_KEPT_BINS_H_
