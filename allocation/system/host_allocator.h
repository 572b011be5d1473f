#ifndef STRATA_ALLOCATION_SYSTEM_HOST_ALLOCATOR_H_
#define STRATA_ALLOCATION_SYSTEM_HOST_ALLOCATOR_H_

#include <atomic>
#include <cstddef>
#include <memory>

#include "strata/allocation/system/host_memory_rules.h"
#include "strata/allocation/system/system_allocator.h"

namespace strata {

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
  std::size_t SizeOf(std::size_t bytes) const override;
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
