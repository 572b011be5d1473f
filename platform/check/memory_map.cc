#include "strata/platform/check/memory_map.h"

#include <algorithm>

namespace strata::check {
namespace {

// The first region that ends after `ptr`.
template <class Regions>
auto FirstBehind(const Regions& regions, std::uint64_t ptr) {
  auto at = regions.upper_bound(ptr);
  if (at != regions.begin() && std::prev(at)->second->end() > ptr) --at;
  return at;
}

}  // namespace

void MemoryMap::EraseRange(Regions* regions, std::uint64_t ptr,
                           std::uint64_t bytes) {
  auto at = FirstBehind(*regions, ptr);
  while (at != regions->end() && at->first < ptr + bytes) {
    at = regions->erase(at);
  }
}

std::shared_ptr<MemoryRegion> MemoryMap::Add(RegionKind kind, std::uint64_t ptr,
                                             std::uint64_t bytes,
                                             const AccessSite& by) {
  EraseRange(&live_, ptr, bytes);
  EraseRange(&gone_, ptr, bytes);
  auto region = std::make_shared<MemoryRegion>();
  region->id = ++last_id_;
  region->kind = kind;
  region->life.ptr = ptr;
  region->life.bytes = bytes;
  region->life.allocated = by;
  region->offset = ptr;
  live_[ptr] = region;
  return region;
}

std::shared_ptr<MemoryRegion> MemoryMap::Find(std::uint64_t ptr) const {
  const auto found = live_.find(ptr);
  return found == live_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<MemoryRegion>> MemoryMap::FindMappings(
    std::uint64_t ptr, std::uint64_t bytes) const {
  std::vector<std::shared_ptr<MemoryRegion>> found;
  for (auto at = FirstBehind(live_, ptr);
       at != live_.end() && at->first < ptr + bytes; ++at) {
    if (at->second->kind == RegionKind::kMapping) found.push_back(at->second);
  }
  return found;
}

std::uint64_t MemoryMap::Remove(const std::shared_ptr<MemoryRegion>& region,
                                const AccessSite& by) {
  region->life.freed = by;
  live_.erase(region->life.ptr);
  // Host addresses are soon reused for memory that is not reported.
  if (region->kind != RegionKind::kHost) {
    gone_[region->life.ptr] = region;
    gone_order_.push_back(region);
    if (gone_order_.size() > kMaxGone) {
      const auto oldest = gone_.find(gone_order_.front()->life.ptr);
      if (oldest != gone_.end() && oldest->second == gone_order_.front()) {
        gone_.erase(oldest);
      }
      gone_order_.pop_front();
    }
  }
  if (region->kind != RegionKind::kMapping) return 0;
  const auto physical = physical_.find(region->space);
  if (physical == physical_.end()) return 0;
  --physical->second.mappings;
  return DropIfUnused(region->space);
}

std::vector<MemoryMap::Piece> MemoryMap::Pieces(std::uint64_t ptr,
                                                std::uint64_t bytes) const {
  std::vector<Piece> pieces;
  const std::uint64_t end = ptr + bytes;
  for (auto at = FirstBehind(live_, ptr); at != live_.end() && at->first < end;
       ++at) {
    const std::uint64_t from = std::max(ptr, at->first);
    const std::uint64_t to = std::min(end, at->second->end());
    pieces.push_back({at->second, from, to - from});
  }
  return pieces;
}

std::shared_ptr<const MemoryRegion> MemoryMap::FindGone(
    std::uint64_t ptr, std::uint64_t bytes) const {
  const auto at = FirstBehind(gone_, ptr);
  return at != gone_.end() && at->first < ptr + bytes ? at->second : nullptr;
}

void MemoryMap::CreatePhysical(std::uint64_t handle) {
  handles_[handle] = ++last_space_;
  physical_[last_space_] = Physical();
}

void MemoryMap::RetainPhysical(std::uint64_t handle, std::uint64_t ptr) {
  const auto mappings = FindMappings(ptr, 1);
  if (mappings.empty()) return;
  const std::uint64_t space = mappings.front()->space;
  handles_[handle] = space;
  ++physical_[space].references;
}

std::uint64_t MemoryMap::ReleasePhysical(std::uint64_t handle) {
  const auto found = handles_.find(handle);
  if (found == handles_.end()) return 0;
  const std::uint64_t space = found->second;
  if (--physical_[space].references == 0) handles_.erase(found);
  return DropIfUnused(space);
}

std::shared_ptr<MemoryRegion> MemoryMap::Map(std::uint64_t ptr,
                                             std::uint64_t bytes,
                                             std::uint64_t handle,
                                             const AccessSite& by) {
  const auto found = handles_.find(handle);
  if (found == handles_.end()) return nullptr;
  auto region = Add(RegionKind::kMapping, ptr, bytes, by);
  region->space = found->second;
  region->offset = 0;
  ++physical_[found->second].mappings;
  return region;
}

std::uint64_t MemoryMap::DropIfUnused(std::uint64_t space) {
  const auto found = physical_.find(space);
  if (found == physical_.end() || found->second.references != 0 ||
      found->second.mappings != 0) {
    return 0;
  }
  physical_.erase(found);
  return space;
}

}  // namespace strata::check
