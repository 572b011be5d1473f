// Access checks and effects of copies, fills and work of the simulated device.
// A range that is wrong at the call is an error of the call. A range that is
// freed by the time the work runs is an illegal address.
#include <algorithm>
#include <cstring>

#include "strata/platform/sim/device/sim_device.h"
#include "strata/platform/sim/device/sim_platform.h"
#include "strata/platform/sim/memory/address_space.h"

namespace strata {
namespace {

using When = AddressSpace::When;

// Calls `visit(bytes, count)` for each piece of a range whose bytes are stored.
template <class Visit>
void VisitPieces(const AddressSpace& space, DevicePtr ptr, std::uint64_t bytes,
                 Visit visit) {
  while (bytes > 0) {
    const AddressSpace::Piece piece = space.At(ptr);
    const std::uint64_t count = std::min(piece.count, bytes);
    if (piece.bytes != nullptr) visit(piece.bytes, count);
    ptr += count;
    bytes -= count;
  }
}

// Copies `bytes` bytes from `source` to `to`: zeros where none are kept.
void Read(const AddressSpace& space, DevicePtr source, std::uint64_t bytes,
          char* to) {
  while (bytes > 0) {
    const AddressSpace::Piece piece = space.At(source);
    const std::uint64_t count = std::min(piece.count, bytes);
    if (piece.bytes != nullptr) {
      std::memmove(to, piece.bytes, count);
    } else {
      std::memset(to, 0, count);
    }
    source += count;
    to += count;
    bytes -= count;
  }
}

void StoreWords(char* bytes, std::uint64_t count, std::uint64_t pattern) {
  for (std::uint64_t i = 0; i < count; i += sizeof pattern) {
    std::memcpy(bytes + i, &pattern, sizeof pattern);
  }
}

bool MayCopy(const AddressSpace& space, When when, int device, DevicePtr target,
             DevicePtr source, std::size_t bytes) {
  return space.MayCopy(when, device, target, bytes, true) &&
         space.MayCopy(when, device, source, bytes, false);
}

}  // namespace

Status SimDevice::CheckCopy(When when, DevicePtr target, DevicePtr source,
                            std::size_t bytes) const {
  return MayCopy(platform_->address_space(), when, ordinal_, target, source,
                 bytes)
             ? Status::kSuccess
             : Status::kInvalidValue;
}

Status SimDevice::ExecuteCopy(DevicePtr target, DevicePtr source,
                              std::size_t bytes) {
  if (!MayCopy(platform_->address_space(), When::kRuns, ordinal_, target,
               source, bytes)) {
    return Status::kIllegalAddress;
  }
  const AddressSpace& space = platform_->address_space();
  VisitPieces(space, target, bytes, [&](char* to, std::uint64_t count) {
    Read(space, source, count, to);
    source += count;
  });
  return Status::kSuccess;
}

Status SimDevice::CheckFill(When when, DevicePtr ptr, std::size_t bytes) const {
  return platform_->address_space().MayFill(when, ordinal_, ptr, bytes)
             ? Status::kSuccess
             : Status::kInvalidValue;
}

Status SimDevice::ExecuteFill(DevicePtr ptr, int value, std::size_t bytes) {
  const AddressSpace& space = platform_->address_space();
  if (!space.MayFill(When::kRuns, ordinal_, ptr, bytes)) {
    return Status::kIllegalAddress;
  }
  VisitPieces(space, ptr, bytes, [value](char* at, std::uint64_t count) {
    std::memset(at, value, count);
  });
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
  const AddressSpace& space = platform_->address_space();
  for (const WorkRange* range = ranges; range != ranges + count; ++range) {
    if (!range->write) continue;
    VisitPieces(space, range->ptr, range->bytes,
                [pattern](char* bytes, std::uint64_t size) {
                  StoreWords(bytes, size, pattern);
                });
  }
  return Status::kSuccess;
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

}  // namespace strata
