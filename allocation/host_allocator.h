#ifndef STRATA_ALLOCATION_HOST_ALLOCATOR_H_
#define STRATA_ALLOCATION_HOST_ALLOCATOR_H_

#include <cstddef>

#include "strata/allocation/system_allocator.h"

namespace strata {

// Pageable host memory from the C++ heap, one call per request.
class HostAllocator final : public SystemAllocator {
 public:
  HostAllocator();

  const char* name() const override { return "host"; }
  std::size_t max_alignment() const override { return kMaxAlignment; }

 protected:
  void* Obtain(const Request& request, Failure& failure) noexcept override;
  void Return(void* data, std::size_t bytes) noexcept override;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_HOST_ALLOCATOR_H_
