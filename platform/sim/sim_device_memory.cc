// Device memory, copies and fills of the simulated device.

#include <cstring>

#include "strata/platform/sim/host_ranges.h"
#include "strata/platform/sim/sim_device.h"
#include "strata/platform/sim/sim_device_run.h"
#include "strata/platform/sim/sim_platform.h"

namespace strata {
namespace {

void* HostPointer(DevicePtr ptr) { return reinterpret_cast<void*>(ptr); }

MemoryType TypeOf(HostRangeKind kind) {
  return kind == HostRangeKind::kManaged ? MemoryType::kManaged
                                         : MemoryType::kHost;
}

}  // namespace

Status SimDevice::MemAlloc(DevicePtr* ptr, std::size_t bytes) {
  SimCall call;
  call.call = DeviceCall::kMemAlloc;
  call.bytes = bytes;
  std::size_t frame_bytes = 0;
  return Run(
      call,
      [&](SimCall* seen) {
        if (ptr == nullptr) return Status::kInvalidValue;
        if (bytes == 0) {
          *ptr = 0;
          return Status::kSuccess;
        }
        std::lock_guard lock(mutex_);
        const std::uint64_t free_before = memory_.free_bytes();
        const Status status = memory_.Allocate(bytes, ptr);
        if (status != Status::kSuccess) return status;
        frame_bytes = free_before - memory_.free_bytes();
        seen->ptr = *ptr;
        return status;
      },
      &frame_bytes);
}

Status SimDevice::MemFree(DevicePtr ptr) {
  SimCall call;
  call.call = DeviceCall::kMemFree;
  call.ptr = ptr;
  return Run(call, [&](SimCall*) {
    if (ptr == 0) return Status::kSuccess;
    if (DeviceOfAddress(ptr) != ordinal_) {
      return platform_->host_ranges().Unmap(HostRangeKind::kManaged,
                                            HostPointer(ptr));
    }
    std::lock_guard lock(mutex_);
    return memory_.Free(ptr);
  });
}

Status SimDevice::MemcpyAsync(DevicePtr target, DevicePtr source,
                              std::size_t bytes, Stream stream) {
  SimCall call;
  call.call = DeviceCall::kMemcpyAsync;
  call.ptr = target;
  call.bytes = bytes;
  call.value = source;
  call.stream_uid = stream.uid;
  return Run(call, [&](SimCall*) {
    const Status status = CheckStream(stream);
    if (status != Status::kSuccess || bytes == 0) return status;
    const Reach to = ReachOf(target, bytes);
    const Reach from = ReachOf(source, bytes);
    if (to == Reach::kNone || from == Reach::kNone) {
      return Status::kInvalidValue;
    }
    if (to == Reach::kHost && from == Reach::kHost) {
      std::memmove(HostPointer(target), HostPointer(source), bytes);
    }
    return Status::kSuccess;
  });
}

Status SimDevice::MemsetAsync(DevicePtr ptr, int value, std::size_t bytes,
                              Stream stream) {
  SimCall call;
  call.call = DeviceCall::kMemsetAsync;
  call.ptr = ptr;
  call.bytes = bytes;
  call.value = static_cast<unsigned char>(value);
  call.stream_uid = stream.uid;
  return Run(call, [&](SimCall*) {
    const Status status = CheckStream(stream);
    if (status != Status::kSuccess || bytes == 0) return status;
    const Reach reach = ReachOf(ptr, bytes);
    if (reach == Reach::kNone) return Status::kInvalidValue;
    if (reach == Reach::kHost) std::memset(HostPointer(ptr), value, bytes);
    return Status::kSuccess;
  });
}

Status SimDevice::PointerAttributes(DevicePtr ptr, PointerInfo* info) {
  SimCall call;
  call.call = DeviceCall::kPointerAttributes;
  call.ptr = ptr;
  return Run(call, [&](SimCall*) {
    if (info == nullptr) return Status::kInvalidValue;
    PointerInfo found;
    HostRangeKind kind = HostRangeKind::kPinned;
    int device = -1;
    const SimDevice* owner = platform_->OwnerOf(ptr);
    if (owner != nullptr && owner->OwnsRange(ptr, 1)) {
      found.type = MemoryType::kDevice;
      found.device = owner->ordinal();
    } else if (platform_->host_ranges().Find(ptr, 1, &kind, &device)) {
      found.type = TypeOf(kind);
      found.device = device;
    }
    *info = found;
    return Status::kSuccess;
  });
}

std::uint64_t SimDevice::peak_used_bytes() const {
  std::lock_guard lock(mutex_);
  return memory_.peak_used_bytes();
}

bool SimDevice::OwnsRange(DevicePtr ptr, std::size_t bytes) const {
  std::lock_guard lock(mutex_);
  return memory_.Covers(ptr, bytes);
}

SimDevice::Reach SimDevice::ReachOf(DevicePtr ptr, std::size_t bytes) const {
  const SimDevice* owner = platform_->OwnerOf(ptr);
  if (owner != nullptr) {
    return owner->OwnsRange(ptr, bytes) ? Reach::kDevice : Reach::kNone;
  }
  return platform_->host_ranges().Find(ptr, bytes, nullptr, nullptr)
             ? Reach::kHost
             : Reach::kNone;
}

}  // namespace strata
