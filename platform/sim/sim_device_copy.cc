// What copies and fills of the simulated device may touch, and what they do.
#include <algorithm>
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
  const auto good = [&](DevicePtr end) {
    return ReachOf(end, bytes) != Reach::kNone || IsPageable(end, bytes);
  };
  return good(target) && good(source) ? Status::kSuccess
                                      : Status::kInvalidValue;
}

Status SimDevice::ExecuteCopy(DevicePtr target, DevicePtr source,
                              std::size_t bytes) {
  if (CheckCopy(target, source, bytes) != Status::kSuccess) {
    return Status::kIllegalAddress;
  }
  if (ReachOf(target, bytes) != Reach::kDevice &&
      ReachOf(source, bytes) != Reach::kDevice) {
    std::memmove(HostPointer(target), HostPointer(source), bytes);
  }
  return Status::kSuccess;
}

Status SimDevice::CheckFill(DevicePtr ptr, std::size_t bytes) const {
  return ReachOf(ptr, bytes) != Reach::kNone ? Status::kSuccess
                                             : Status::kInvalidValue;
}

Status SimDevice::ExecuteFill(DevicePtr ptr, int value, std::size_t bytes) {
  if (CheckFill(ptr, bytes) != Status::kSuccess) return Status::kIllegalAddress;
  if (ReachOf(ptr, bytes) == Reach::kHost) {
    std::memset(HostPointer(ptr), value, bytes);
  }
  return Status::kSuccess;
}

Status SimDevice::ExecuteWork(const WorkRange* ranges, std::size_t count,
                              std::uint64_t pattern) {
  for (std::size_t i = 0; i < count; ++i) {
    const Reach reach = ReachOf(ranges[i].ptr, ranges[i].bytes);
    if (reach == Reach::kNone) return Status::kIllegalAddress;
    if (reach != Reach::kHost || !ranges[i].write) continue;
    auto* words = static_cast<std::uint64_t*>(HostPointer(ranges[i].ptr));
    std::fill_n(words, ranges[i].bytes / sizeof pattern, pattern);
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
