#include "strata/allocation/system/pinned_allocator.h"

#include <stdexcept>
#include <utility>

#include "strata/allocation/streams/host_order.h"
#include "strata/allocation/system/device_allocator.h"

namespace strata {

PinnedAllocator::PinnedAllocator(std::shared_ptr<Platform> platform, int device,
                                 std::shared_ptr<const CaptureGate> gate)
    : SystemAllocator(PinnedPlace(device),
                      platform->device(device).caps().alloc_alignment_bytes),
      platform_(std::move(platform)),
      device_(platform_->device(device)),
      gate_(std::move(gate)) {
  if (!device_.caps().pinned_memory) {
    throw std::invalid_argument(ToString(place()) +
                                ": the device has no pinned host memory");
  }
}

void* PinnedAllocator::Obtain(const Request& request,
                              Failure& failure) noexcept {
  void* data = nullptr;
  const DriverCallScope scope(gate_.get(), device_);
  const Status status =
      scope ? device_.MallocHost(&data, request.bytes, 0) : Status::kNotReady;
  if (status == Status::kSuccess) return data;
  failure.status = status;
  failure.reason = status == Status::kMemoryAllocation
                       ? Failure::Reason::kHostMemory
                       : Failure::Reason::kDevice;
  return nullptr;
}

Status PinnedAllocator::Return(void* data, std::size_t /*bytes*/) noexcept {
  const DriverCallScope scope(gate_.get(), device_);
  // Another thread may have observed the end of the last use.
  AcquireHostOrder(device_);
  return scope ? device_.FreeHost(data) : Status::kNotReady;
}

}  // namespace strata
