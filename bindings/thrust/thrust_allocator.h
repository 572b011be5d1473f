#ifndef STRATA_BINDINGS_THRUST_THRUST_ALLOCATOR_H_
#define STRATA_BINDINGS_THRUST_THRUST_ALLOCATOR_H_

#include <cstddef>

#include "strata/bindings/c/pointer_map.h"
#include "strata/facade/allocator_facade.h"

namespace strata {

// Temporary memory for the algorithms of Thrust, from a facade:
// `thrust::sort(thrust::cuda::par(allocator).on(stream), …)`.
//
// Threads: any thread.
// Lifetime: the destructor frees all remaining memory. The facade outlives it.
// Source: PaddlePaddle's memory::ThrustAllocator.
class ThrustAllocator {
 public:
  using value_type = char;

  ThrustAllocator(AllocatorFacade& facade, Place place, Stream stream)
      : facade_(facade), place_(place), stream_(stream) {}
  ThrustAllocator(const ThrustAllocator&) = delete;
  ThrustAllocator& operator=(const ThrustAllocator&) = delete;
  ~ThrustAllocator() = default;

  // Null for 0 bytes.
  //
  // Errors: as AllocatorFacade::Alloc; std::invalid_argument if `bytes` is
  //   negative.
  char* allocate(std::ptrdiff_t bytes);  // NOLINT: Thrust's name
  // Null is ignored. Thrust calls this from destructors, so it does not throw:
  // an address that is not a live one of this allocator is logged, and nothing
  // changes.
  void deallocate(char* data,  // NOLINT: Thrust's name
                  std::size_t bytes) noexcept;

 private:
  AllocatorFacade& facade_;
  const Place place_;
  const Stream stream_;
  PointerMap pointers_;  // the live allocations, by address
};

}  // namespace strata

#endif  // STRATA_BINDINGS_THRUST_THRUST_ALLOCATOR_H_
