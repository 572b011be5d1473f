#ifndef STRATA_ALLOCATION_DEVICE_ALLOCATOR_H_
#define STRATA_ALLOCATION_DEVICE_ALLOCATOR_H_

#include <cstddef>
#include <memory>

#include "strata/allocation/streams/capture_gate.h"
#include "strata/allocation/system_allocator.h"
#include "strata/platform/device.h"
#include "strata/platform/platform.h"

namespace strata {

// A Device seen as an Allocator: MemAlloc and MemFree per request.
//
// Model: a failure carries what the device says is free.
// Lifetime: keeps the platform alive.
class DeviceAllocator final : public SystemAllocator {
 public:
  // `device` is an ordinal of `platform`. With a gate its calls harm no capture
  // that is announced there.
  DeviceAllocator(std::shared_ptr<Platform> platform, int device,
                  std::shared_ptr<const CaptureGate> gate = nullptr);

  const char* name() const override { return "device"; }

 protected:
  void* Obtain(const Request& request, Failure& failure) noexcept override;
  Status Return(void* data, std::size_t bytes) noexcept override;

 private:
  std::shared_ptr<Platform> platform_;
  Device& device_;
  std::shared_ptr<const CaptureGate> gate_;  // null: none
};

// Fills in what a device call that refused memory means: reason, status and the
// device's own numbers.
void ExplainDeviceFailure(Device& device, Status status, Failure& failure);

}  // namespace strata

#endif  // STRATA_ALLOCATION_DEVICE_ALLOCATOR_H_
