#ifndef STRATA_STRATEGY_CUDA_MALLOC_ASYNC_KEPT_BINS_H_
#define STRATA_STRATEGY_CUDA_MALLOC_ASYNC_KEPT_BINS_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "strata/allocation/chunks/chunk_holder.h"

namespace strata {

// Number of cached blocks of each large bin of a chain. Other chains read it
// without the chain's lock.
//
// Units: bytes, powers of two of at least kLeastBytes.
// Threads: hold the chain's lock to change it. any() and empty(): any thread;
//   the result may be out of date.
class KeptBins {
 public:
  // Smaller bins are not worth the calls and the lock that it takes to fetch
  // them.
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
    // Not an atomic addition: the chain's lock excludes other writers.
    count.store(count.load(std::memory_order_relaxed) + by,
                std::memory_order_relaxed);
  }

  std::array<std::atomic<std::uint32_t>, 64 - kLeastBits> counts_{};
};

}  // namespace strata

#endif  // STRATA_STRATEGY_CUDA_MALLOC_ASYNC_KEPT_BINS_H_
