#ifndef STRATA_ALLOCATION_SYSTEM_MANAGED_ALLOCATOR_H_
#define STRATA_ALLOCATION_SYSTEM_MANAGED_ALLOCATOR_H_

#include <cstddef>
#include <memory>

#include "strata/allocation/system/device_allocator.h"

namespace strata {

// Memory that migrates between host and device, from MallocManaged.
class ManagedAllocator final : public DeviceCallAllocator {
 public:
  // `device` is an ordinal of `platform`. The place served is
  // ManagedPlace(device), or DevicePlace(device) in managed memory.
  //
  // Errors: std::invalid_argument if the device has no such memory.
  ManagedAllocator(std::shared_ptr<Platform> platform, int device,
                   PlaceKind serves = PlaceKind::kManaged,
                   std::shared_ptr<const CaptureGate> gate = nullptr);

  const char* name() const override { return "managed"; }

 private:
  Status Call(std::size_t bytes, void** data) noexcept override;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_SYSTEM_MANAGED_ALLOCATOR_H_
