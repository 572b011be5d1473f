// Device memory of the simulated device.

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
  CallRecord call;
  call.call = DeviceCall::kMemAlloc;
  call.bytes = bytes;
  std::size_t frame_bytes = 0;
  return Run(
      call,
      [&](CallRecord* seen) {
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
  CallRecord call;
  call.call = DeviceCall::kMemFree;
  call.ptr = ptr;
  return Run(call, [&](CallRecord*) {
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
  CallRecord call;
  call.call = DeviceCall::kMemcpyAsync;
  call.ptr = target;
  call.bytes = bytes;
  call.value = source;
  call.stream_uid = stream.uid;
  return Run(call, [&](CallRecord*) {
    Status status = CheckStream(stream);
    if (status != Status::kSuccess || bytes == 0) return status;
    std::lock_guard lock(mutex_);
    status = CheckCopy(target, source, bytes);
    if (status != Status::kSuccess) return status;
    return ExecuteCopy(target, source, bytes);
  });
}

Status SimDevice::MemsetAsync(DevicePtr ptr, int value, std::size_t bytes,
                              Stream stream) {
  CallRecord call;
  call.call = DeviceCall::kMemsetAsync;
  call.ptr = ptr;
  call.bytes = bytes;
  call.value = static_cast<unsigned char>(value);
  call.stream_uid = stream.uid;
  return Run(call, [&](CallRecord*) {
    Status status = CheckStream(stream);
    if (status != Status::kSuccess || bytes == 0) return status;
    std::lock_guard lock(mutex_);
    status = CheckFill(ptr, bytes);
    if (status != Status::kSuccess) return status;
    return ExecuteFill(ptr, value, bytes);
  });
}

Status SimDevice::PointerAttributes(DevicePtr ptr, PointerInfo* info) {
  CallRecord call;
  call.call = DeviceCall::kPointerAttributes;
  call.ptr = ptr;
  return Run(call, [&](CallRecord*) {
    if (info == nullptr) return Status::kInvalidValue;
    std::lock_guard lock(mutex_);
    PointerInfo found;
    HostRangeKind kind = HostRangeKind::kPinned;
    int device = -1;
    const SimDevice* owner = platform_->OwnerOf(ptr);
    if (owner != nullptr && owner->memory_.Covers(ptr, 1)) {
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

}  // namespace strata
