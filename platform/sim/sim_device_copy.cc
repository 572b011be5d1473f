// What copies and fills of the simulated device may touch, and what they do.
#include <cstring>

#include "strata/platform/sim/host_ranges.h"
#include "strata/platform/sim/sim_device.h"
#include "strata/platform/sim/sim_platform.h"

namespace strata {
namespace {

void* HostPointer(DevicePtr ptr) { return reinterpret_cast<void*>(ptr); }

}  // namespace

Status SimDevice::CheckCopy(DevicePtr target, DevicePtr source,
                            std::size_t bytes) const {
  return ReachOf(target, bytes) != Reach::kNone &&
                 ReachOf(source, bytes) != Reach::kNone
             ? Status::kSuccess
             : Status::kInvalidValue;
}

Status SimDevice::ExecuteCopy(DevicePtr target, DevicePtr source,
                              std::size_t bytes) {
  if (ReachOf(target, bytes) == Reach::kHost &&
      ReachOf(source, bytes) == Reach::kHost) {
    std::memmove(HostPointer(target), HostPointer(source), bytes);
  }
  return Status::kSuccess;
}

Status SimDevice::CheckFill(DevicePtr ptr, std::size_t bytes) const {
  return ReachOf(ptr, bytes) != Reach::kNone ? Status::kSuccess
                                             : Status::kInvalidValue;
}

Status SimDevice::ExecuteFill(DevicePtr ptr, int value, std::size_t bytes) {
  if (ReachOf(ptr, bytes) == Reach::kHost) {
    std::memset(HostPointer(ptr), value, bytes);
  }
  return Status::kSuccess;
}

SimDevice::Reach SimDevice::ReachOf(DevicePtr ptr, std::size_t bytes) const {
  const SimDevice* owner = platform_->OwnerOf(ptr);
  if (owner != nullptr) {
    return owner->memory_.Covers(ptr, bytes) ? Reach::kDevice : Reach::kNone;
  }
  return platform_->host_ranges().Find(ptr, bytes, nullptr, nullptr)
             ? Reach::kHost
             : Reach::kNone;
}

}  // namespace strata
