// What copies, fills and work of the simulated device may touch, and what they
// do. A range that is wrong when the call is made is the call's error; one that
// is gone by the time the work runs is an illegal address.
#include <algorithm>
#include <cstring>

#include "strata/platform/sim/address_space.h"
#include "strata/platform/sim/sim_device.h"
#include "strata/platform/sim/sim_platform.h"

namespace strata {
namespace {

// Calls `visit(bytes, count)` for each piece of a range whose bytes are kept.
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

void StoreWords(char* bytes, std::uint64_t count, std::uint64_t pattern) {
  for (std::uint64_t i = 0; i < count; i += sizeof pattern) {
    std::memcpy(bytes + i, &pattern, sizeof pattern);
  }
}

}  // namespace

Status SimDevice::CheckCopy(DevicePtr target, DevicePtr source,
                            std::size_t bytes) const {
  const AddressSpace& space = platform_->address_space();
  return space.MayCopy(ordinal_, target, bytes, true) &&
                 space.MayCopy(ordinal_, source, bytes, false)
             ? Status::kSuccess
             : Status::kInvalidValue;
}

Status SimDevice::ExecuteCopy(DevicePtr target, DevicePtr source,
                              std::size_t bytes) {
  if (CheckCopy(target, source, bytes) != Status::kSuccess) {
    return Status::kIllegalAddress;
  }
  const AddressSpace& space = platform_->address_space();
  VisitPieces(space, target, bytes, [&](char* to, std::uint64_t count) {
    VisitPieces(space, source, count, [&](const char* from, std::uint64_t n) {
      std::memmove(to, from, n);
      to += n;
    });
    source += count;
  });
  return Status::kSuccess;
}

Status SimDevice::CheckFill(DevicePtr ptr, std::size_t bytes) const {
  return platform_->address_space().MayFill(ordinal_, ptr, bytes)
             ? Status::kSuccess
             : Status::kInvalidValue;
}

Status SimDevice::ExecuteFill(DevicePtr ptr, int value, std::size_t bytes) {
  if (CheckFill(ptr, bytes) != Status::kSuccess) return Status::kIllegalAddress;
  VisitPieces(platform_->address_space(), ptr, bytes,
              [value](char* at, std::uint64_t count) {
                std::memset(at, value, count);
              });
  return Status::kSuccess;
}

Status SimDevice::ExecuteWork(const WorkRange* ranges, std::size_t count,
                              std::uint64_t pattern) {
  const AddressSpace& space = platform_->address_space();
  const WorkRange* end = ranges + count;
  const auto may = [&](const WorkRange& range) {
    return range.bytes == 0 ||
           space.MayWork(ordinal_, peers_, range.ptr, range.bytes, range.write);
  };
  if (!std::all_of(ranges, end, may)) return Status::kIllegalAddress;
  for (const WorkRange* range = ranges; range != end; ++range) {
    if (!range->write) continue;
    VisitPieces(space, range->ptr, range->bytes,
                [pattern](char* bytes, std::uint64_t size) {
                  StoreWords(bytes, size, pattern);
                });
  }
  return Status::kSuccess;
}

}  // namespace strata
