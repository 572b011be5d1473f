#include "strata/platform/sim/host_ranges.h"

#include <sys/mman.h>

#include <iterator>

namespace strata {

HostRanges::~HostRanges() {
  for (const auto& [address, range] : ranges_) {
    if (range.kind == HostRangeKind::kRegistered) continue;
    munmap(reinterpret_cast<void*>(address), range.bytes);
  }
}

Status HostRanges::Map(HostRangeKind kind, int device, std::size_t bytes,
                       void** ptr) {
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return Status::kMemoryAllocation;
  std::lock_guard lock(mutex_);
  ranges_.insert_or_assign(reinterpret_cast<std::uintptr_t>(mapped),
                           Range{bytes, kind, device});
  *ptr = mapped;
  return Status::kSuccess;
}

Status HostRanges::Unmap(HostRangeKind kind, void* ptr) {
  std::size_t bytes = 0;
  {
    std::lock_guard lock(mutex_);
    const auto range = ranges_.find(reinterpret_cast<std::uintptr_t>(ptr));
    if (range == ranges_.end() || range->second.kind != kind) {
      return Status::kInvalidValue;
    }
    bytes = range->second.bytes;
    ranges_.erase(range);
  }
  munmap(ptr, bytes);
  return Status::kSuccess;
}

Status HostRanges::Register(int device, void* ptr, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(ptr);
  if (bytes > UINTPTR_MAX - begin) return Status::kInvalidValue;
  std::lock_guard lock(mutex_);
  if (TouchesLocked(begin, bytes)) return Status::kHostMemoryAlreadyRegistered;
  ranges_.emplace(begin, Range{bytes, HostRangeKind::kRegistered, device});
  return Status::kSuccess;
}

bool HostRanges::Touches(std::uintptr_t address, std::size_t bytes) const {
  std::lock_guard lock(mutex_);
  return TouchesLocked(address, bytes);
}

bool HostRanges::TouchesLocked(std::uintptr_t address,
                               std::size_t bytes) const {
  const auto next = ranges_.lower_bound(address);
  if (next != ranges_.end() && next->first < address + bytes) return true;
  if (next == ranges_.begin()) return false;
  const auto previous = std::prev(next);
  return address - previous->first < previous->second.bytes;
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
  auto range = ranges_.upper_bound(address);
  if (range == ranges_.begin()) return false;
  --range;
  const std::uintptr_t offset = address - range->first;
  const std::size_t size = range->second.bytes;
  if (offset >= size || bytes > size - offset) return false;
  if (kind != nullptr) *kind = range->second.kind;
  if (device != nullptr) *device = range->second.device;
  return true;
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

}  // namespace strata
