#ifndef STRATA_ALLOCATION_HOST_MEMORY_RULES_H_
#define STRATA_ALLOCATION_HOST_MEMORY_RULES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "strata/platform/host_system.h"
#include "strata/platform/place.h"

namespace strata {

struct HostMemoryOptions {
  bool lock = false;  // keep the pages in memory
  // Warn of a piece above this fraction of the host's memory; 0: never.
  double warn_large_fraction = 0;
  // Warn when the pieces in use at the place exceed this fraction; 0: never.
  double warn_total_fraction = 0;
};

// What the system allocators of host memory do with each piece: warn if it is
// large, lock its pages.
//
// Model: a single piece is warned of five times, the total once. Pieces of at
//   least kLeastLockedBytes are locked; they must consist of whole pages of
//   their own, because locks do not nest. A lock that the kernel refuses is
//   warned of once, and the piece is used without.
// Threads: any thread.
// Cost: a few comparisons; a system call to lock and one to unlock.
// Source: tf_bfc.md §2 (CPUAllocator: 10 % of RAM, five times; 50 %, once);
//   paddle.md §2 (use_pinned_memory).
class HostMemoryRules {
 public:
  // Whole pages cost a piece of this size 6 % at most.
  static constexpr std::size_t kLeastLockedBytes = std::size_t{64} << 10;
  static constexpr int kMostLargeWarnings = 5;

  // Does nothing.
  HostMemoryRules() = default;
  HostMemoryRules(std::shared_ptr<HostSystem> host,
                  const HostMemoryOptions& options);

  // Whether a piece of `bytes` will be locked.
  bool Locks(std::size_t bytes) const {
    return lock_ && bytes >= kLeastLockedBytes;
  }
  // `place` got a piece of `bytes` at `data`; with it, `in_use` bytes are.
  void Obtained(Place place, void* data, std::size_t bytes,
                std::uint64_t in_use) noexcept;
  // The piece is about to go back.
  void Returning(void* data, std::size_t bytes) noexcept;

 private:
  void Warn(Place place, std::size_t bytes, std::uint64_t in_use) noexcept;

  const std::shared_ptr<HostSystem> host_;
  const bool lock_ = false;
  const std::uint64_t memory_bytes_ = 0;  // of the host
  // More than this is warned of; the largest number: never.
  const std::uint64_t large_bytes_ = UINT64_MAX;
  const std::uint64_t total_bytes_ = UINT64_MAX;
  std::atomic<int> large_warnings_{0};
  std::atomic<bool> warned_of_total_{false};
  std::atomic<bool> warned_of_lock_{false};
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_HOST_MEMORY_RULES_H_
