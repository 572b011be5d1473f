#ifndef STRATA_BINDINGS_C_PLAIN_MEMORY_H_
#define STRATA_BINDINGS_C_PLAIN_MEMORY_H_

#include <cstddef>
#include <memory>

#include "strata/bindings/c/pointer_map.h"
#include "strata/facade/allocator_facade.h"

namespace strata {

// Memory of one device by plain addresses and stream handles, for adapters to
// foreign interfaces.
//
// Model: owns the allocation behind each address until Free. A handle names a
//   stream of the device as in AllocatorFacade::Alloc; null is its legacy
//   stream.
// Threads: any thread.
// Lifetime: the destructor frees all remaining memory. Owns a reference to the
//   facade.
class PlainMemory {
 public:
  // Errors: std::invalid_argument if the facade is null, does not serve
  //   `place`, or `place` is neither device nor managed memory.
  PlainMemory(std::shared_ptr<AllocatorFacade> facade, Place place);
  PlainMemory(const PlainMemory&) = delete;
  PlainMemory& operator=(const PlainMemory&) = delete;
  ~PlainMemory() = default;

  // Allocates `bytes` bytes at a multiple of `alignment`, for use on `stream`.
  // Null for 0 bytes.
  //
  // Errors: as AllocatorFacade::Alloc.
  void* Allocate(std::size_t bytes, std::size_t alignment, void* stream);
  // Allocate for use on any stream at once: waits for the default stream.
  //
  // Errors: also DeviceError if that wait fails, as during a capture.
  void* AllocateNow(std::size_t bytes, std::size_t alignment);

  // Frees an address. Its last use was submitted to `stream`, or is ordered
  // before the work submitted there. Null is ignored. An address that was not
  // allocated here, or is freed already, is logged.
  //
  // Cost: a device call if the address was allocated for another stream.
  void Free(void* data, void* stream) noexcept;
  // Free after all uses have completed.
  void FreeNow(void* data) noexcept;

 private:
  // Null, and logged, if the address is unknown.
  AllocationPtr Take(void* data) noexcept;

  const std::shared_ptr<AllocatorFacade> facade_;
  const Place place_;
  PointerMap pointers_;  // destroyed before the facade
};

}  // namespace strata

#endif  // STRATA_BINDINGS_C_PLAIN_MEMORY_H_
