#ifndef STRATA_ALLOCATION_SYSTEM_DEVICE_ALLOCATOR_H_
#define STRATA_ALLOCATION_SYSTEM_DEVICE_ALLOCATOR_H_

#include <cstddef>
#include <memory>

#include "strata/allocation/streams/capture_gate.h"
#include "strata/allocation/system/system_allocator.h"
#include "strata/platform/device.h"
#include "strata/platform/platform.h"

namespace strata {

// A Device as an Allocator: one MemAlloc and one MemFree per request.
//
// Model: a failure contains the free bytes that the device reports.
// Lifetime: keeps the platform alive.
class DeviceAllocator final : public SystemAllocator {
 public:
  // `device` is an ordinal of `platform`. With `gate`, device calls do not
  // disturb a capture that is announced there.
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

// Sets reason, status and memory numbers of `failure` for a device call that
// refused memory.
void ExplainDeviceFailure(Device& device, Status status, Failure& failure);

}  // namespace strata

#endif  // STRATA_ALLOCATION_SYSTEM_DEVICE_ALLOCATOR_H_
