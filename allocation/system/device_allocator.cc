#include "strata/allocation/system/device_allocator.h"

#include <utility>

#include "strata/allocation/streams/host_order.h"

namespace strata {

void ExplainDeviceFailure(Device& device, Status status, Failure& failure) {
  failure.status = status;
  failure.reason = status == Status::kMemoryAllocation
                       ? Failure::Reason::kDeviceMemory
                       : Failure::Reason::kDevice;
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  if (device.MemGetInfo(&free_bytes, &total_bytes) == Status::kSuccess) {
    failure.device_free_bytes = free_bytes;
    failure.device_total_bytes = total_bytes;
  }
}

DeviceAllocator::DeviceAllocator(std::shared_ptr<Platform> platform, int device,
                                 std::shared_ptr<const CaptureGate> gate)
    : SystemAllocator(DevicePlace(device),
                      platform->device(device).caps().alloc_alignment_bytes),
      platform_(std::move(platform)),
      device_(platform_->device(device)),
      gate_(std::move(gate)) {}

void* DeviceAllocator::Obtain(const Request& request,
                              Failure& failure) noexcept {
  DevicePtr ptr = 0;
  const DriverCallScope scope(gate_.get(), device_);
  const Status status =
      scope ? device_.MemAlloc(&ptr, request.bytes) : Status::kNotReady;
  if (status != Status::kSuccess) {
    ExplainDeviceFailure(device_, status, failure);
    return nullptr;
  }
  return reinterpret_cast<void*>(ptr);
}

Status DeviceAllocator::Return(void* data, std::size_t /*bytes*/) noexcept {
  const DriverCallScope scope(gate_.get(), device_);
  // Another thread may have observed the end of the last use.
  AcquireHostOrder(device_);
  return scope ? device_.MemFree(reinterpret_cast<DevicePtr>(data))
               : Status::kNotReady;
}

}  // namespace strata
