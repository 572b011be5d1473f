#ifndef STRATA_ALLOCATION_SYSTEM_HOST_ALLOCATOR_H_
#define STRATA_ALLOCATION_SYSTEM_HOST_ALLOCATOR_H_

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

}  // namespace strata

#endif  // STRATA_ALLOCATION_SYSTEM_HOST_ALLOCATOR_H_
