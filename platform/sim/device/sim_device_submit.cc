// Submission of copies and fills of the simulated device. Their checks and
// effects are in sim_device_copy.cc.
//
// A device cannot access pageable host memory, so a driver copies through its
// own memory (cuda_semantics.md H6). A pageable source is read at the call. A
// copy to pageable memory is complete when the call returns. A captured copy
// reads and writes pageable memory at each replay.
#include <cstring>
#include <memory>
#include <new>

#include "strata/platform/sim/device/sim_device.h"
#include "strata/platform/sim/device/sim_platform.h"
#include "strata/platform/sim/faults/cost_table.h"
#include "strata/platform/sim/memory/address_space.h"

namespace strata::sim {
namespace {

using When = AddressSpace::When;

When WhenSubmitted(const SimCapture* capture) {
  return capture == nullptr ? When::kSubmitted : When::kCaptured;
}

std::uint64_t CopyCostNs(DevicePtr target, DevicePtr source,
                         std::size_t bytes) {
  const bool on_device =
      target >= kDeviceWindowBegin && source >= kDeviceWindowBegin;
  return OperationCostNs(
      on_device ? OperationKind::kCopyOnDevice : OperationKind::kCopyWithHost,
      bytes);
}

}  // namespace

Status SimDevice::DoMemcpyAsync(Call* seen, DevicePtr target, DevicePtr source,
                                std::size_t bytes, Stream stream) {
  return DoMemcpyAsync(seen, target, source, bytes, stream, nullptr);
}

Status SimDevice::DoMemcpyAsync(Call* seen, DevicePtr target, DevicePtr source,
                                std::size_t bytes, Stream stream,
                                ReadCounter* reads) {
  SimLock lock(mutex_);
  if (!streams_.Accepts(stream)) return Status::kInvalidResourceHandle;
  if (bytes == 0) return Status::kSuccess;
  SimCapture* capture = CaptureOf(stream);
  if (!MayCopy(WhenSubmitted(capture), target, source, bytes)) {
    return Status::kInvalidValue;
  }
  CopyAction copy;
  copy.target = target;
  copy.source = source;
  copy.bytes = bytes;
  copy.reads = reads;
  if (capture != nullptr) {
    copy.target_device = OwnerOfMemory(target);
    copy.source_device = OwnerOfMemory(source);
    return AddNode(capture, stream, CopyCostNs(target, source, bytes), copy,
                   seen);
  }
  return SubmitCopy(copy, stream, &lock);
}

Status SimDevice::DoMemsetAsync(Call* seen, DevicePtr ptr, int value,
                                std::size_t bytes, Stream stream) {
  SimLock lock(mutex_);
  if (!streams_.Accepts(stream)) return Status::kInvalidResourceHandle;
  if (bytes == 0) return Status::kSuccess;
  SimCapture* capture = CaptureOf(stream);
  if (!platform_->address_space().MayFill(WhenSubmitted(capture), ordinal_, ptr,
                                          bytes)) {
    return Status::kInvalidValue;
  }
  const std::uint64_t cost_ns = OperationCostNs(OperationKind::kFill, bytes);
  if (capture != nullptr) {
    return AddNode(capture, stream, cost_ns,
                   FillAction{ptr, value, bytes, OwnerOfMemory(ptr)}, seen);
  }
  Submit(
      stream, cost_ns, [=, this] { return ExecuteFill(ptr, value, bytes); },
      &lock);
  return Status::kSuccess;
}

bool SimDevice::StoresCopy(DevicePtr target, std::size_t bytes) const {
  return target < kDeviceWindowBegin || !caps_.phantom_memory ||
         (memory_.kept() != nullptr && bytes <= KeptBytes::kMostWriteBytes);
}

Status SimDevice::SubmitCopy(CopyAction copy, const Stream& stream,
                             SimLock* lock) {
  const AddressSpace& space = platform_->address_space();
  const bool to_pageable = space.IsPageable(copy.target, copy.bytes);
  const std::uint64_t cost_ns =
      CopyCostNs(copy.target, copy.source, copy.bytes);
  std::shared_ptr<char[]> staged;
  // Work that is complete when the call returns reads the source directly.
  const bool is_read_now = space.IsPageable(copy.source, copy.bytes) &&
                           !to_pageable && !scheduler_.RunsAtOnce();
  if (is_read_now && !StoresCopy(copy.target, copy.bytes)) {
    copy.source = kSourceIsRead;
  } else if (is_read_now) {
    staged.reset(new (std::nothrow) char[copy.bytes]);
    if (staged == nullptr) return Status::kMemoryAllocation;
    std::memcpy(staged.get(), reinterpret_cast<const char*>(copy.source),
                copy.bytes);
    copy.source = reinterpret_cast<DevicePtr>(staged.get());
  }
  Submit(
      stream, cost_ns, [this, copy, staged] { return ExecuteCopy(copy); },
      lock);
  if (!to_pageable) return Status::kSuccess;
  scheduler_.AwaitStream(stream, lock);
  return sticky_error();
}

int SimDevice::OwnerOfMemory(DevicePtr ptr) const {
  const PointerInfo info = platform_->address_space().Describe(ptr);
  return info.type == MemoryType::kDevice ? info.device : -1;
}

Status SimDevice::AwaitBeforeFree(SimLock* lock) {
  if (scheduler_.PendingCount(ordinal_) != 0 &&
      platform_->free_policy().Waits()) {
    scheduler_.AwaitDevice(ordinal_, lock);
  }
  return sticky_error();
}

}  // namespace strata::sim
