#ifndef STRATA_ALLOCATION_NUMA_ALLOCATOR_H_
#define STRATA_ALLOCATION_NUMA_ALLOCATOR_H_

#include <atomic>
#include <cstddef>
#include <memory>

#include "strata/allocation/host_memory_rules.h"
#include "strata/allocation/system_allocator.h"

namespace strata {

// Pageable host memory of one NUMA node, in whole pages mapped per request:
// that is its size.
//
// Model: the kernel is told to take the pages from the node while it has some,
//   from others after that. If it refuses to be told, as it does in many
//   containers, that is warned of once, and pages come from the node of the
//   thread that touches them first.
// Cost: three system calls per request and the faults of fresh pages; meant to
//   be below a strategy that keeps memory.
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

#endif  // STRATA_ALLOCATION_NUMA_ALLOCATOR_H_
