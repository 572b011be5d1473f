#include "strata/allocation/system/managed_allocator.h"

#include <stdexcept>
#include <utility>

#include "strata/allocation/streams/host_order.h"
#include "strata/allocation/system/device_allocator.h"

namespace strata {

ManagedAllocator::ManagedAllocator(std::shared_ptr<Platform> platform,
                                   int device, PlaceKind serves,
                                   std::shared_ptr<const CaptureGate> gate)
    : SystemAllocator(serves == PlaceKind::kDevice ? DevicePlace(device)
                                                   : ManagedPlace(device),
                      platform->device(device).caps().alloc_alignment_bytes),
      platform_(std::move(platform)),
      device_(platform_->device(device)),
      gate_(std::move(gate)) {
  if (!device_.caps().managed_memory) {
    throw std::invalid_argument(ToString(place()) +
                                ": the device has no managed memory");
  }
}

void* ManagedAllocator::Obtain(const Request& request,
                               Failure& failure) noexcept {
  DevicePtr ptr = 0;
  const DriverCallScope scope(gate_.get(), device_);
  const Status status =
      scope ? device_.MallocManaged(&ptr, request.bytes, kManagedGlobal)
            : Status::kNotReady;
  if (status != Status::kSuccess) {
    ExplainDeviceFailure(device_, status, failure);
    return nullptr;
  }
  return reinterpret_cast<void*>(ptr);
}

Status ManagedAllocator::Return(void* data, std::size_t /*bytes*/) noexcept {
  const DriverCallScope scope(gate_.get(), device_);
  // Another thread may have observed the end of the last use.
  AcquireHostOrder(device_);
  return scope ? device_.MemFree(reinterpret_cast<DevicePtr>(data))
               : Status::kNotReady;
}

}  // namespace strata
