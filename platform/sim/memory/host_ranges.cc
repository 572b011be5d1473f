#include "strata/platform/sim/memory/host_ranges.h"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>

#include "strata/platform/sim/memory/recycled_map.h"

namespace strata::sim {

HostRanges::~HostRanges() {
  for (const auto& [address, range] : ranges_) {
    if (range.kind == HostRangeKind::kRegistered) continue;
    munmap(reinterpret_cast<void*>(address), range.bytes);
  }
  for (const auto& [address, range] : quarantined_) {
    munmap(reinterpret_cast<void*>(address), range.bytes);
  }
}

Status HostRanges::Map(HostRangeKind kind, int device, std::size_t bytes,
                       void** ptr) {
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return Status::kMemoryAllocation;
  std::lock_guard lock(mutex_);
  ManagedUse* const use =
      kind == HostRangeKind::kManaged ? &managed_[device] : nullptr;
  ranges_.insert_or_assign(reinterpret_cast<std::uintptr_t>(mapped),
                           Range{bytes, kind, device});
  if (use != nullptr) {
    use->bytes += bytes;
    use->peak_bytes = std::max(use->peak_bytes, use->bytes);
  }
  *ptr = mapped;
  return Status::kSuccess;
}

Status HostRanges::Unmap(HostRangeKind kind, void* ptr) {
  std::lock_guard lock(mutex_);
  const auto range = ranges_.find(reinterpret_cast<std::uintptr_t>(ptr));
  if (range == ranges_.end() || range->second.kind != kind) {
    return Status::kInvalidValue;
  }
  if (kind == HostRangeKind::kManaged) {
    managed_[range->second.device].bytes -= range->second.bytes;
  }
  Quarantine(range);
  return Status::kSuccess;
}

Status HostRanges::Register(int device, void* ptr, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(ptr);
  if (!IsHostRange(begin, bytes)) return Status::kInvalidValue;
  std::lock_guard lock(mutex_);
  if (AnyOverlap(ranges_, begin, bytes)) {
    return Status::kHostMemoryAlreadyRegistered;
  }
  ranges_.emplace(begin, Range{bytes, HostRangeKind::kRegistered, device});
  return Status::kSuccess;
}

Status HostRanges::Unregister(void* ptr) {
  std::lock_guard lock(mutex_);
  const auto range = ranges_.find(reinterpret_cast<std::uintptr_t>(ptr));
  if (range == ranges_.end() ||
      range->second.kind != HostRangeKind::kRegistered) {
    return Status::kHostMemoryNotRegistered;
  }
  ranges_.erase(range);
  return Status::kSuccess;
}

bool HostRanges::Find(std::uintptr_t address, std::size_t bytes,
                      HostRangeKind* kind, int* device) const {
  std::lock_guard lock(mutex_);
  const auto range = FindCovering(ranges_, address, bytes);
  if (range == ranges_.end()) return false;
  if (kind != nullptr) *kind = range->second.kind;
  if (device != nullptr) *device = range->second.device;
  return true;
}

bool HostRanges::Touches(std::uintptr_t address, std::size_t bytes) const {
  std::lock_guard lock(mutex_);
  return AnyOverlap(ranges_, address, bytes) ||
         AnyOverlap(quarantined_, address, bytes);
}

bool HostRanges::AnyOverlap(const Ranges& ranges, std::uintptr_t begin,
                            std::size_t bytes) {
  const auto next = ranges.lower_bound(begin);
  if (next != ranges.end() && next->first - begin < bytes) return true;
  if (next == ranges.begin()) return false;
  const auto previous = std::prev(next);
  return begin - previous->first < previous->second.bytes;
}

// Returns the pages to the host at once, the addresses later.
void HostRanges::Quarantine(Ranges::iterator range) {
  const std::uintptr_t address = range->first;
  auto* memory = reinterpret_cast<void*>(address);
  const std::size_t bytes = range->second.bytes;
  quarantined_.insert(ranges_.extract(range));
  quarantine_.push_back(address);
  // On failure the memory stays until its addresses are released.
  static_cast<void>(
      mmap(memory, bytes, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0));
  if (quarantine_.size() <= kQuarantinedFrees) return;
  const auto oldest = quarantined_.find(quarantine_.front());
  munmap(reinterpret_cast<void*>(oldest->first), oldest->second.bytes);
  quarantined_.erase(oldest);
  quarantine_.pop_front();
}

std::uint64_t HostRanges::peak_managed_bytes(int device) const {
  std::lock_guard lock(mutex_);
  const auto use = managed_.find(device);
  return use == managed_.end() ? 0 : use->second.peak_bytes;
}

void HostRanges::AddLeaks(int device, SimLeaks* leaks) const {
  std::lock_guard lock(mutex_);
  for (const auto& [address, range] : ranges_) {
    if (range.device != device) continue;
    switch (range.kind) {
      case HostRangeKind::kPinned:
        ++leaks->pinned_ranges;
        leaks->pinned_bytes += range.bytes;
        break;
      case HostRangeKind::kRegistered:
        ++leaks->registered_ranges;
        leaks->registered_bytes += range.bytes;
        break;
      case HostRangeKind::kManaged:
        ++leaks->managed_ranges;
        leaks->managed_bytes += range.bytes;
        break;
    }
  }
}

}  // namespace strata::sim
