#include "strata/platform/sim/memory/address_space.h"

#include <algorithm>

#include "strata/platform/sim/memory/device_memory.h"

namespace strata::sim {
namespace {

bool Suffices(std::optional<Access> access, bool write) {
  if (!access) return false;
  return *access == Access::kReadWrite || (*access == Access::kRead && !write);
}

MemoryType TypeOf(HostRangeKind kind) {
  return kind == HostRangeKind::kManaged ? MemoryType::kManaged
                                         : MemoryType::kHost;
}

}  // namespace

bool AddressSpace::MayCopy(When when, int device, DevicePtr ptr,
                           std::uint64_t bytes, bool write) const {
  if (IsPageable(ptr, bytes)) return true;
  const MappedMemory* mapped = MappedAt(ptr);
  if (mapped == nullptr) return IsMemory(ptr, bytes);
  if (when == When::kCaptured && mapped->IsPromised(ptr, bytes)) return true;
  return Suffices(when == When::kRuns
                      ? mapped->AccessOf(ptr, bytes, device)
                      : mapped->AccessOnSubmission(ptr, bytes, device),
                  write);
}

bool AddressSpace::MayFill(When when, int device, DevicePtr ptr,
                           std::uint64_t bytes) const {
  return !IsPageable(ptr, bytes) && MayCopy(when, device, ptr, bytes, true);
}

bool AddressSpace::MayWork(int device, const std::set<int>& peers,
                           DevicePtr ptr, std::uint64_t bytes,
                           bool write) const {
  const int owner = OwnerOf(ptr);
  if (owner >= 0 && owner != device && peers.count(owner) == 0) return false;
  return !IsPageable(ptr, bytes) &&
         MayCopy(When::kRuns, device, ptr, bytes, write);
}

bool AddressSpace::IsPageable(DevicePtr ptr, std::uint64_t bytes) const {
  return IsHostRange(ptr, bytes) && !host_->Touches(ptr, bytes);
}

bool AddressSpace::IsMemory(DevicePtr ptr, std::uint64_t bytes) const {
  if (const MappedMemory* mapped = MappedAt(ptr)) {
    const bool known =
        mapped->IsLive(ptr, bytes) || mapped->IsPromised(ptr, bytes);
    return known && mapped->AccessOf(ptr, bytes, 0).has_value();
  }
  const int owner = OwnerOf(ptr);
  if (owner >= 0) return physical_->device(owner).Covers(ptr, bytes);
  return host_->Find(ptr, bytes, nullptr, nullptr);
}

bool AddressSpace::IsLive(DevicePtr ptr, std::uint64_t bytes) const {
  const MappedMemory* mapped = MappedAt(ptr);
  return mapped == nullptr || mapped->IsLive(ptr, bytes);
}

std::optional<AddressSpace::Range> AddressSpace::RangeOf(DevicePtr ptr) const {
  if (!IsMemory(ptr, 1)) return std::nullopt;
  // IsMemory() also accepts each part of such a range. So the search finds the
  // lengths before and behind `ptr` bit by bit.
  constexpr int kBits = 53;
  std::uint64_t before = 0;
  std::uint64_t behind = 1;
  for (int bit = kBits; bit >= 0; --bit) {
    const std::uint64_t step = std::uint64_t{1} << bit;
    if (before + step <= ptr && IsMemory(ptr - before - step, before + step)) {
      before += step;
    }
    if (IsMemory(ptr, behind + step)) behind += step;
  }
  return Range{ptr - before, before + behind};
}

PointerInfo AddressSpace::Describe(DevicePtr ptr) const {
  PointerInfo info;
  HostRangeKind kind = HostRangeKind::kPinned;
  int device = -1;
  const auto place = Locate(ptr);
  if (place && IsLive(ptr, 1)) {
    info.type = MemoryType::kDevice;
    info.device = place->device;
  } else if (host_->Find(ptr, 1, &kind, &device)) {
    info.type = TypeOf(kind);
    info.device = device;
  }
  return info;
}

AddressSpace::Piece AddressSpace::At(DevicePtr ptr) const {
  const auto place = Locate(ptr);
  // Host memory is contiguous to the end of its range.
  if (!place) return {reinterpret_cast<char*>(ptr), UINT64_MAX};
  const DeviceMemory& memory = physical_->device(place->device);
  const FrameStore* store = memory.store();
  return {store == nullptr ? nullptr : store->at(place->run.offset),
          place->run.bytes, memory.kept(), place->run.offset};
}

std::vector<FilePart> AddressSpace::PartsOf(DevicePtr ptr,
                                            std::uint64_t bytes) const {
  std::vector<FilePart> parts;
  while (bytes > 0) {
    const auto place = Locate(ptr);
    const FrameStore* store =
        place ? physical_->device(place->device).store() : nullptr;
    if (store == nullptr) return {};
    const std::uint64_t count = std::min(place->run.bytes, bytes);
    store->AppendParts({place->run.offset, count}, &parts);
    ptr += count;
    bytes -= count;
  }
  return parts;
}

std::optional<MappedMemory::Place> AddressSpace::Locate(DevicePtr ptr) const {
  if (const MappedMemory* mapped = MappedAt(ptr)) return mapped->Locate(ptr);
  const int owner = OwnerOf(ptr);
  if (owner < 0) return std::nullopt;
  const auto run = physical_->device(owner).Locate(ptr);
  if (!run) return std::nullopt;
  return MappedMemory::Place{owner, *run};
}

const MappedMemory* AddressSpace::MappedAt(DevicePtr ptr) const {
  for (const MappedMemory* memory : mapped_) {
    if (memory->Contains(ptr)) return memory;
  }
  return nullptr;
}

int AddressSpace::OwnerOf(DevicePtr ptr) const {
  const int device = DeviceOfAddress(ptr);
  return device < physical_->device_count() ? device : -1;
}

}  // namespace strata::sim
