#ifndef STRATA_ALLOCATION_SYSTEM_PINNED_ALLOCATOR_H_
#define STRATA_ALLOCATION_SYSTEM_PINNED_ALLOCATOR_H_

#include <cstddef>
#include <memory>

#include "strata/allocation/system/device_allocator.h"

namespace strata {

// Page-locked host memory, from MallocHost.
class PinnedAllocator final : public DeviceCallAllocator {
 public:
  // `device` is an ordinal of `platform`.
  //
  // Errors: std::invalid_argument if the device has no such memory.
  PinnedAllocator(std::shared_ptr<Platform> platform, int device,
                  std::shared_ptr<const CaptureGate> gate = nullptr);

  const char* name() const override { return "pinned"; }

 private:
  Status Call(std::size_t bytes, void** data) noexcept override;
  Status CallFree(void* data) noexcept override;
  void Explain(Status status, Failure& failure) noexcept override;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_SYSTEM_PINNED_ALLOCATOR_H_
