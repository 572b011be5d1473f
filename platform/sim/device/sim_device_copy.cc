// Access checks and effects of copies, fills and work of the simulated device.
// A range that is wrong at the call is an error of the call. A range that is
// freed by the time the work runs is an illegal address.
#include <algorithm>

#include "strata/platform/sim/device/sim_device.h"
#include "strata/platform/sim/device/sim_platform.h"
#include "strata/platform/sim/memory/address_space.h"
#include "strata/platform/sim/memory/byte_effects.h"
#include "strata/platform/sim/memory/host_ranges.h"
#include "strata/platform/sim/memory/physical_memory.h"

namespace strata::sim {
namespace {

using When = AddressSpace::When;

}  // namespace

bool SimDevice::MayCopy(When when, DevicePtr target, DevicePtr source,
                        std::size_t bytes) const {
  const AddressSpace& space = platform_->address_space();
  return space.MayCopy(when, ordinal_, target, bytes, true) &&
         space.MayCopy(when, ordinal_, source, bytes, false);
}

Status SimDevice::ExecuteCopy(const CopyAction& copy) {
  const AddressSpace& space = platform_->address_space();
  if (copy.source == kSourceIsRead) {
    if (!space.MayCopy(When::kRuns, ordinal_, copy.target, copy.bytes, true)) {
      return Status::kIllegalAddress;
    }
    ForgetBytes(space, copy.target, copy.bytes);
    return Status::kSuccess;
  }
  if (!MayCopy(When::kRuns, copy.target, copy.source, copy.bytes)) {
    return Status::kIllegalAddress;
  }
  const std::uint64_t unknown_bytes =
      CopyBytes(space, copy.target, copy.source, copy.bytes);
  if (copy.reads != nullptr) CountRead(copy, unknown_bytes);
  return Status::kSuccess;
}

void SimDevice::CountRead(const CopyAction& copy,
                          std::uint64_t unknown_bytes) const {
  if (copy.target >= kDeviceWindowBegin) return;
  const bool from_device = copy.source >= kDeviceWindowBegin;
  HostRangeKind kind = HostRangeKind::kPinned;
  if (!from_device) {
    platform_->host_ranges().Find(copy.source, copy.bytes, &kind, nullptr);
    if (kind != HostRangeKind::kManaged) return;
  }
  copy.reads->all.fetch_add(1, std::memory_order_relaxed);
  // Where every byte is stored, nothing says who wrote it.
  if (from_device && caps_.phantom_memory && unknown_bytes == 0) {
    copy.reads->written.fetch_add(1, std::memory_order_relaxed);
  }
}

Status SimDevice::ExecuteFill(DevicePtr ptr, int value, std::size_t bytes) {
  const AddressSpace& space = platform_->address_space();
  if (!space.MayFill(When::kRuns, ordinal_, ptr, bytes)) {
    return Status::kIllegalAddress;
  }
  FillBytes(space, ptr, value, bytes);
  return Status::kSuccess;
}

bool SimDevice::MayWork(const WorkRange* ranges, std::size_t count) const {
  const AddressSpace& space = platform_->address_space();
  return std::all_of(ranges, ranges + count, [&](const WorkRange& range) {
    return range.bytes == 0 ||
           space.MayWork(ordinal_, peers_, range.ptr, range.bytes, range.write);
  });
}

Status SimDevice::ExecuteWork(const WorkRange* ranges, std::size_t count,
                              std::uint64_t pattern) {
  if (!MayWork(ranges, count)) return Status::kIllegalAddress;
  // Work without ranges stands for a kernel whose memory is not known.
  if (count == 0 && memory_.kept() != nullptr) memory_.kept()->NoteKernel();
  const AddressSpace& space = platform_->address_space();
  for (const WorkRange* range = ranges; range != ranges + count; ++range) {
    if (range->write) FillWords(space, range->ptr, pattern, range->bytes);
  }
  return Status::kSuccess;
}

void SimPlatform::NoteUnknownKernel() {
  std::lock_guard lock(mutex_);
  for (int i = 0; i < device_count(); ++i) {
    KeptBytes* const kept = physical_memory_.device(i).kept();
    if (kept != nullptr) kept->NoteKernel();
  }
}

void* SimDevice::HostView(DevicePtr ptr, std::size_t bytes) {
  std::lock_guard lock(mutex_);
  if (bytes == 0) return nullptr;
  if (!platform_->address_space().IsMemory(ptr, bytes)) {
    // Pool memory: functions that were submitted before its free still use it.
    const SimDevice* owner = platform_->OwnerOf(ptr);
    if (owner == nullptr || !owner->pools_.AwaitsFree(ptr, bytes, scheduler_)) {
      return nullptr;
    }
  }
  return ViewOf(ptr, bytes);
}

void* SimDevice::ViewOf(DevicePtr ptr, std::size_t bytes) {
  const AddressSpace& space = platform_->address_space();
  const AddressSpace::Piece first = space.At(ptr);
  if (first.bytes == nullptr || first.count >= bytes) return first.bytes;
  HostViews& views = platform_->host_views();
  if (void* view = views.Find(ptr, bytes)) return view;
  return views.Make(ptr, bytes, space.PartsOf(ptr, bytes));
}

}  // namespace strata::sim
