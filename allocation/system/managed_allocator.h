#ifndef STRATA_ALLOCATION_SYSTEM_MANAGED_ALLOCATOR_H_
#define STRATA_ALLOCATION_SYSTEM_MANAGED_ALLOCATOR_H_

#include <cstddef>
#include <memory>

#include "strata/allocation/streams/capture_gate.h"
#include "strata/allocation/system/system_allocator.h"
#include "strata/platform/device.h"
#include "strata/platform/platform.h"

namespace strata {

// The system allocator of memory that migrates between host and device: one
// MallocManaged and one MemFree per request.
//
// Errors: std::invalid_argument from the constructor if the device has no such
//   memory.
// Lifetime: keeps the platform alive.
class ManagedAllocator final : public SystemAllocator {
 public:
  // `device` is an ordinal of `platform`. The place served is
  // ManagedPlace(device), or DevicePlace(device) in managed memory. With
  // `gate`, device calls do not disturb a capture that is announced there.
  ManagedAllocator(std::shared_ptr<Platform> platform, int device,
                   PlaceKind serves = PlaceKind::kManaged,
                   std::shared_ptr<const CaptureGate> gate = nullptr);

  const char* name() const override { return "managed"; }

 protected:
  void* Obtain(const Request& request, Failure& failure) noexcept override;
  Status Return(void* data, std::size_t bytes) noexcept override;

 private:
  std::shared_ptr<Platform> platform_;
  Device& device_;
  std::shared_ptr<const CaptureGate> gate_;  // null: none
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_SYSTEM_MANAGED_ALLOCATOR_H_
