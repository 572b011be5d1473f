#include "strata/allocation/system/device_allocator.h"

#include <cstdint>
#include <stdexcept>
#include <utility>

#include "strata/allocation/streams/host_order.h"

namespace strata {

void ExplainDeviceFailure(Device& device, Status status, Failure& failure) {
  failure.status = status;
  failure.reason = status == Status::kMemoryAllocation
                       ? Failure::Reason::kDeviceMemory
                       : Failure::Reason::kDevice;
  AddDeviceMemory(device, failure);
}

void AddDeviceMemory(Device& device, Failure& failure) {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  if (device.MemGetInfo(&free_bytes, &total_bytes) == Status::kSuccess) {
    failure.device_free_bytes = free_bytes;
    failure.device_total_bytes = total_bytes;
  }
}

DeviceAllocator::DeviceAllocator(Place place,
                                 std::shared_ptr<Platform> platform,
                                 std::shared_ptr<const CaptureGate> gate)
    : SystemAllocator(
          place, platform->device(place.index).caps().alloc_alignment_bytes),
      platform_(std::move(platform)),
      device_(platform_->device(place.index)),
      gate_(std::move(gate)) {}

void* DeviceAllocator::Obtain(const Request& request,
                              Failure& failure) noexcept {
  void* data = nullptr;
  const CaptureGate::CallScope scope(gate_.get(), device_);
  const Status status = scope ? Call(request.bytes, &data) : Status::kNotReady;
  if (status == Status::kSuccess) return data;
  Explain(status, failure);
  return nullptr;
}

Status DeviceAllocator::Return(void* data, std::size_t /*bytes*/) noexcept {
  const CaptureGate::CallScope scope(gate_.get(), device_);
  // Another thread may have observed the end of the last use.
  AcquireHostOrder(device_);
  return scope ? CallFree(data) : Status::kNotReady;
}

Status DeviceAllocator::CallFree(void* data) noexcept {
  return device_.MemFree(reinterpret_cast<DevicePtr>(data));
}

void DeviceAllocator::Explain(Status status, Failure& failure) noexcept {
  ExplainDeviceFailure(device_, status, failure);
}

DeviceAllocator::DeviceAllocator(std::shared_ptr<Platform> platform, int device,
                                 std::shared_ptr<const CaptureGate> gate)
    : DeviceAllocator(DevicePlace(device), std::move(platform),
                      std::move(gate)) {}

Status DeviceAllocator::Call(std::size_t bytes, void** data) noexcept {
  DevicePtr ptr = 0;
  const Status status = device().MemAlloc(&ptr, bytes);
  *data = reinterpret_cast<void*>(ptr);
  return status;
}

ManagedAllocator::ManagedAllocator(std::shared_ptr<Platform> platform,
                                   int device, PlaceKind serves,
                                   std::shared_ptr<const CaptureGate> gate)
    : DeviceAllocator({serves, static_cast<std::uint16_t>(device)},
                      std::move(platform), std::move(gate)) {
  if (!this->device().caps().managed_memory) {
    throw std::invalid_argument(ToString(place()) +
                                ": the device has no managed memory");
  }
}

Status ManagedAllocator::Call(std::size_t bytes, void** data) noexcept {
  DevicePtr ptr = 0;
  const Status status = device().MallocManaged(&ptr, bytes, kManagedGlobal);
  *data = reinterpret_cast<void*>(ptr);
  return status;
}

PinnedAllocator::PinnedAllocator(std::shared_ptr<Platform> platform, int device,
                                 std::shared_ptr<const CaptureGate> gate)
    : DeviceAllocator(PinnedPlace(device), std::move(platform),
                      std::move(gate)) {
  if (!this->device().caps().pinned_memory) {
    throw std::invalid_argument(ToString(place()) +
                                ": the device has no pinned host memory");
  }
}

Status PinnedAllocator::Call(std::size_t bytes, void** data) noexcept {
  return device().MallocHost(data, bytes, 0);
}

Status PinnedAllocator::CallFree(void* data) noexcept {
  return device().FreeHost(data);
}

void PinnedAllocator::Explain(Status status, Failure& failure) noexcept {
  failure.status = status;
  failure.reason = status == Status::kMemoryAllocation
                       ? Failure::Reason::kHostMemory
                       : Failure::Reason::kDevice;
}

}  // namespace strata
