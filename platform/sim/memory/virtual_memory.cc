#include "strata/platform/sim/memory/virtual_memory.h"

#include <algorithm>

#include "strata/base/size.h"
#include "strata/platform/sim/memory/device_memory.h"
#include "strata/platform/sim/memory/recycled_map.h"

namespace strata::sim {
VirtualMemory::VirtualMemory(PhysicalMemory* physical, HostViews* views)
    : physical_(physical), views_(views) {}

Status VirtualMemory::Reserve(int device, std::uint64_t bytes,
                              std::uint64_t alignment, DevicePtr hint,
                              DevicePtr* ptr) {
  if (bytes == 0 || bytes % kFrameBytes != 0 || hint % kHintUnitBytes != 0 ||
      (alignment != 0 && !IsPowerOfTwo(alignment))) {
    return Status::kInvalidValue;
  }
  const std::uint64_t aligned = std::max(alignment, kFrameBytes);
  // No address of the window is a multiple of an alignment above the window's
  // size.
  if (bytes >= kMaxReservationBytes || aligned > kReservedWindowBytes) {
    return Status::kMemoryAllocation;
  }
  auto begin = lane_.Take(bytes, aligned);
  if (!begin) begin = lane_.TakeLowest(bytes, aligned);
  if (!begin) return Status::kMemoryAllocation;
  reservations_.emplace(*begin, Reservation{bytes, device});
  *ptr = *begin;
  return Status::kSuccess;
}

Status VirtualMemory::FreeReservation(DevicePtr ptr, std::uint64_t bytes) {
  const auto found = reservations_.find(ptr);
  if (found == reservations_.end() || found->second.bytes != bytes ||
      AnyMapped(ptr, bytes)) {
    return Status::kInvalidValue;
  }
  lane_.Give(ptr, bytes);
  reservations_.erase(found);
  return Status::kSuccess;
}

Status VirtualMemory::Map(DevicePtr ptr, std::uint64_t bytes,
                          std::uint64_t offset, MemHandle handle) {
  const PhysicalMemory::Block* block = physical_->FindReferenced(handle);
  if (block == nullptr || bytes == 0) return Status::kInvalidValue;
  // Checked before the address (cuda_semantics.md V5).
  if (offset != 0 || bytes != block->bytes) return Status::kNotSupported;
  if (ptr % kFrameBytes != 0 || !InOneReservation(ptr, bytes) ||
      AnyMapped(ptr, bytes)) {
    return Status::kInvalidValue;
  }
  const auto devices = static_cast<std::size_t>(physical_->device_count());
  mappings_.emplace(
      ptr, Mapping{bytes, handle, std::vector<Access>(devices, Access::kNone)});
  physical_->AddMapping(handle);
  return Status::kSuccess;
}

Status VirtualMemory::Unmap(DevicePtr ptr, std::uint64_t bytes,
                            std::uint64_t* mappings) {
  const std::optional<Span> span = MappingsIn(ptr, bytes);
  if (!span) return Status::kInvalidValue;
  views_->Drop(ptr, bytes);
  std::uint64_t count = 0;
  for (auto mapping = span->begin; mapping != span->end; ++mapping) {
    physical_->DropMapping(mapping->second.handle);
    ++count;
  }
  mappings_.erase(span->begin, span->end);
  if (mappings != nullptr) *mappings = count;
  return Status::kSuccess;
}

Status VirtualMemory::SetAccess(DevicePtr ptr, std::uint64_t bytes,
                                const AccessDescriptor* access,
                                std::size_t count, std::uint64_t* mappings) {
  const std::optional<Span> span = UnbrokenMappings(ptr, bytes);
  if (!span || !ValidDescriptors(access, count)) return Status::kInvalidValue;
  std::uint64_t touched = 0;
  for (auto mapping = span->begin; mapping != span->end; ++mapping) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto device = static_cast<std::size_t>(access[i].location.id);
      mapping->second.rights[device] = access[i].access;
    }
    ++touched;
  }
  if (mappings != nullptr) *mappings = touched;
  return Status::kSuccess;
}

Status VirtualMemory::GetAccess(DevicePtr ptr, Location location,
                                Access* access) const {
  const auto mapping = MappingAt(ptr);
  if (mapping == mappings_.end() || !IsDevice(location)) {
    return Status::kInvalidValue;
  }
  *access = mapping->second.rights[static_cast<std::size_t>(location.id)];
  return Status::kSuccess;
}

Status VirtualMemory::Retain(DevicePtr ptr, MemHandle* handle) {
  const auto mapping = MappingAt(ptr);
  if (mapping == mappings_.end()) return Status::kInvalidValue;
  physical_->AddReference(mapping->second.handle);
  *handle = mapping->second.handle;
  return Status::kSuccess;
}

std::optional<Access> VirtualMemory::AccessOf(DevicePtr ptr,
                                              std::uint64_t bytes,
                                              int device) const {
  auto mapping = MappingAt(ptr);
  auto least = Access::kReadWrite;
  for (;;) {
    if (mapping == mappings_.end() || mapping->first > ptr) return std::nullopt;
    least = std::min(least,
                     mapping->second.rights[static_cast<std::size_t>(device)]);
    const std::uint64_t left = mapping->first + mapping->second.bytes - ptr;
    if (bytes <= left) return least;
    bytes -= left;
    ptr += left;
    ++mapping;
  }
}

std::optional<MappedMemory::Place> VirtualMemory::Locate(DevicePtr ptr) const {
  const auto mapping = MappingAt(ptr);
  if (mapping == mappings_.end()) return std::nullopt;
  const PhysicalMemory::Block& block =
      physical_->Mapped(mapping->second.handle);
  const std::uint64_t offset = ptr - mapping->first;
  PhysicalRun run = physical_->Locate(block, offset);
  run.bytes = std::min(run.bytes, mapping->second.bytes - offset);
  return Place{block.device, run};
}

void VirtualMemory::AddLeaks(int device, SimLeaks* leaks) const {
  for (const auto& [ptr, reservation] : reservations_) {
    if (reservation.device != device) continue;
    ++leaks->reservations;
    leaks->reservation_bytes += reservation.bytes;
  }
  for (const auto& [ptr, mapping] : mappings_) {
    if (physical_->Mapped(mapping.handle).device != device) continue;
    ++leaks->mappings;
    leaks->mapped_bytes += mapping.bytes;
  }
}

bool VirtualMemory::InOneReservation(DevicePtr ptr, std::uint64_t bytes) const {
  return FindCovering(reservations_, ptr, bytes) != reservations_.end();
}

// The mapping that contains `ptr`.
VirtualMemory::Mappings::const_iterator VirtualMemory::MappingAt(
    DevicePtr ptr) const {
  return FindCovering(mappings_, ptr, 1);
}

// The range lies in a reservation, so its end does not overflow.
bool VirtualMemory::AnyMapped(DevicePtr ptr, std::uint64_t bytes) const {
  if (MappingAt(ptr) != mappings_.end()) return true;
  const auto next = mappings_.lower_bound(ptr);
  return next != mappings_.end() && next->first < ptr + bytes;
}

std::optional<VirtualMemory::Span> VirtualMemory::MappingsIn(
    DevicePtr ptr, std::uint64_t bytes) {
  if (bytes == 0 || !InOneReservation(ptr, bytes)) return std::nullopt;
  const auto cuts = [&](DevicePtr at) {
    const auto mapping = MappingAt(at);
    return mapping != mappings_.end() && mapping->first != at;
  };
  const DevicePtr end = ptr + bytes;
  if (cuts(ptr) || cuts(end)) return std::nullopt;
  return Span{mappings_.lower_bound(ptr), mappings_.lower_bound(end)};
}

std::optional<VirtualMemory::Span> VirtualMemory::UnbrokenMappings(
    DevicePtr ptr, std::uint64_t bytes) {
  const std::optional<Span> span = MappingsIn(ptr, bytes);
  if (!span) return std::nullopt;
  std::uint64_t mapped_bytes = 0;
  for (auto mapping = span->begin; mapping != span->end; ++mapping) {
    mapped_bytes += mapping->second.bytes;
  }
  return mapped_bytes == bytes ? span : std::nullopt;
}

bool VirtualMemory::IsDevice(const Location& location) const {
  return location.kind == Location::Kind::kDevice && location.id >= 0 &&
         location.id < physical_->device_count();
}

bool VirtualMemory::ValidDescriptors(const AccessDescriptor* access,
                                     std::size_t count) const {
  return access != nullptr && count > 0 &&
         std::all_of(access, access + count, [this](const auto& descriptor) {
           return IsDevice(descriptor.location) && IsKnown(descriptor.access);
         });
}

}  // namespace strata::sim
