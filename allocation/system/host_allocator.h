#ifndef STRATA_ALLOCATION_SYSTEM_HOST_ALLOCATOR_H_
#define STRATA_ALLOCATION_SYSTEM_HOST_ALLOCATOR_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "strata/allocation/system/system_allocator.h"
#include "strata/platform/host/host_system.h"
#include "strata/platform/place.h"

namespace strata {

struct HostMemoryOptions {
  bool lock = false;  // keep the pages in memory
  // Warn if a piece exceeds this fraction of the host's memory; 0: never.
  double warn_large_fraction = 0;
  // Warn if the pieces in use at the place exceed this fraction; 0: never.
  double warn_total_fraction = 0;
};

// Actions of the system allocators of host memory for each piece: warn if it is
// large, and lock its pages.
//
// Model: warns five times of a large piece, and once of a large total. Locks
//   pieces of at least kLeastLockedBytes. They must consist of whole pages of
//   their own, because locks do not nest. If the kernel refuses a lock, warns
//   once and uses the piece without a lock.
// Threads: any thread.
// Cost: a few comparisons; a system call to lock and one to unlock.
// Source: tf_bfc.md §2 (CPUAllocator: 10 % of RAM, five times; 50 %, once);
//   paddle.md §2 (use_pinned_memory).
class HostMemoryRules {
 public:
  // Whole pages add at most 6 % to a piece of this size.
  static constexpr std::size_t kLeastLockedBytes = std::size_t{64} << 10;
  static constexpr int kMostLargeWarnings = 5;

  // Does nothing.
  HostMemoryRules() = default;
  HostMemoryRules(std::shared_ptr<HostSystem> host,
                  const HostMemoryOptions& options);

  // True if a piece of `bytes` will be locked.
  bool Locks(std::size_t bytes) const {
    return lock_ && bytes >= kLeastLockedBytes;
  }
  // Call it after `place` obtained a piece of `bytes` at `data`. `in_use` is
  // the total in bytes, including this piece.
  void Obtained(Place place, void* data, std::size_t bytes,
                std::uint64_t in_use) noexcept;
  // Call it before the piece is freed.
  void Returning(void* data, std::size_t bytes) noexcept;

 private:
  void Warn(Place place, std::size_t bytes, std::uint64_t in_use) noexcept;

  const std::shared_ptr<HostSystem> host_;
  const bool lock_ = false;
  const std::uint64_t memory_bytes_ = 0;  // of the host
  // Thresholds of the warnings; the largest number: never.
  const std::uint64_t large_bytes_ = UINT64_MAX;
  const std::uint64_t total_bytes_ = UINT64_MAX;
  std::atomic<int> large_warnings_{0};
  std::atomic<bool> warned_of_total_{false};
  std::atomic<bool> warned_of_lock_{false};
};

// Pageable host memory from the C heap, one call per request. So a preloaded
// malloc serves it.
//
// Model: aligned at least to a cache line. A locked piece does not share its
//   pages.
class HostAllocator final : public SystemAllocator {
 public:
  HostAllocator() : HostAllocator(nullptr, HostMemoryOptions()) {}
  // `host` null: no warnings and no locks.
  HostAllocator(std::shared_ptr<HostSystem> host,
                const HostMemoryOptions& options);

  const char* name() const override { return "host"; }
  std::size_t max_alignment() const override { return kMaxAlignment; }

 protected:
  void* Obtain(const Request& request, Failure& failure) noexcept override;
  Status Return(void* data, std::size_t bytes) noexcept override;

 private:
  HostMemoryRules rules_;
};

// Pageable host memory of one NUMA node. Each request maps whole pages; the
// size is rounded up to them.
//
// Model: asks the kernel to take the pages from the node while it has free
//   pages, and then from other nodes. In many containers the kernel refuses
//   this. Then the layer warns once, and a page comes from the node of the
//   thread that touches it first.
// Cost: three system calls per request and the faults of fresh pages. Use it
//   below a strategy that holds memory.
// Source: tf_bfc.md §2 (BasicCPUAllocator: NUMAMalloc).
class NumaAllocator final : public SystemAllocator {
 public:
  // Errors: std::invalid_argument if `host` is null.
  NumaAllocator(int node, std::shared_ptr<HostSystem> host,
                const HostMemoryOptions& options);

  const char* name() const override { return "numa"; }
  std::size_t max_alignment() const override { return kMaxAlignment; }

 protected:
  std::size_t system_size(std::size_t bytes) const override;
  void* Obtain(const Request& request, Failure& failure) noexcept override;
  Status Return(void* data, std::size_t bytes) noexcept override;

 private:
  void Bind(void* data, std::size_t bytes) noexcept;

  const std::shared_ptr<HostSystem> host_;
  HostMemoryRules rules_;
  std::atomic<bool> warned_{false};
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_SYSTEM_HOST_ALLOCATOR_H_
