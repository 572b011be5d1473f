// Retired addresses of VirtualMemoryAllocator, and handles that the driver
// refused to release.

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "strata/strategy/virtual_memory/virtual_memory_allocator.h"

namespace strata {
namespace {

// The most retired addresses that a growth unmaps if there is room for its
// request. Each takes 19 us (H200); docs/rules/virtual_memory.md.
constexpr std::size_t kUnmapsWithRoom = 64;
// The most without room: such a growth mostly moves memory, which takes time as
// well.
constexpr std::size_t kUnmapsWithoutRoom = 16;
// A growth unmaps this part of the surplus if that is more, so that no growth
// pays for several earlier ones.
constexpr std::size_t kSurplusDivisor = 16;
// Retired addresses that a request unmaps during a surplus.
constexpr std::size_t kUnmapsOfRequest = 8;
// Requests from an attempt to unmap that found pending work to the next one.
constexpr std::uint32_t kRequestsBetweenUnmaps = 64;

}  // namespace

using vmm::RangeOf;

PageHandle* VirtualMemoryAllocator::HandleElsewhere(const Block& retired) {
  PageHandle* const handle = RangeOf(retired).HandleAt(retired.data);
  return handle != nullptr && handle->base != retired.data ? handle : nullptr;
}

bool VirtualMemoryAllocator::MayTake(const Block& retired,
                                     Retired which) const noexcept {
  if (which == Retired::kAll) return true;
  if (which == Retired::kDone) return epochs_.IsOver(retired.offset_units);
  const PageHandle* const handle = RangeOf(retired).HandleAt(retired.data);
  return handle == nullptr || handle->is_leaving;
}

void VirtualMemoryAllocator::TakeRetired(
    Retired which, std::vector<Block*>& retired) noexcept {
  Block* next = nullptr;
  for (Block* block = retired_.first();
       block != nullptr && retired.size() < retired.capacity(); block = next) {
    next = block->free_next;
    if (!MayTake(*block, which)) continue;
    retired_.Remove(block);
    --retired_count_;
    blocks_.SetUnusable(block, BlockList::kPendingPool);
    if (PageHandle* const handle = HandleElsewhere(*block)) ++handle->unmaps;
    retired.push_back(block);
  }
}

bool VirtualMemoryAllocator::ReserveForRetired(std::vector<Block*>& retired,
                                               std::size_t most) noexcept {
  std::size_t count = 0;
  {
    const std::lock_guard<ChainLock> guard(lock_);
    count = std::min(retired_count_, most);
  }
  try {
    retired.reserve(count);
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

void VirtualMemoryAllocator::RetireAgain(Block* block) noexcept {
  if (PageHandle* const handle = HandleElsewhere(*block)) --handle->unmaps;
  Retire(block, block->offset_units);
}

std::size_t VirtualMemoryAllocator::UnmapRetired(std::size_t most) noexcept {
  StreamTimeline* const timeline = chain_stream().timeline();
  if (timeline != nullptr && !timeline->MayTouch()) return 0;
  std::vector<Block*> retired;
  if (!ReserveForRetired(retired, most) || retired.capacity() == 0) return 0;
  if (timeline != nullptr) LookAtStream();
  {
    const std::lock_guard<ChainLock> guard(lock_);
    if (timeline != nullptr) epochs_.Update(*timeline);
    TakeRetired(Retired::kDone, retired);
    if (SurplusLocked() == 0) {
      requests_to_unmap_ = 0;
    } else if (!retired.empty()) {
      requests_to_unmap_ = 1;
    }
  }
  if (timeline != nullptr) timeline->AcquireDone();
  std::size_t released = 0;
  // The next growth tries again.
  if (!UnmapTaken(retired, &released)) requests_to_unmap_ = 0;
  return released;
}

std::size_t VirtualMemoryAllocator::UnmapsOfGrowth(
    std::size_t size) const noexcept {
  const bool has_room = pool().budget().RoomBytes(device_) >= size;
  const std::lock_guard<ChainLock> guard(lock_);
  return std::max(has_room ? kUnmapsWithRoom : kUnmapsWithoutRoom,
                  SurplusLocked() / kSurplusDivisor);
}

void VirtualMemoryAllocator::UnmapSurplus() noexcept {
  {
    const std::lock_guard<ChainLock> guard(lock_);
    // For pending work, and for a capture.
    requests_to_unmap_ = SurplusLocked() != 0 ? kRequestsBetweenUnmaps : 0;
    if (requests_to_unmap_ == 0) return;
  }
  if (!IsDuringCapture()) UnmapRetired(kUnmapsOfRequest);
}

void VirtualMemoryAllocator::TellOf(Block* const* first, std::size_t count,
                                    int count_change) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    pool().TellOfRange(first[i]->data, first[i]->size, count_change);
  }
}

PageHandle* VirtualMemoryAllocator::MakeHoles(Block* const* first,
                                              std::size_t count) noexcept {
  PageHandle* handles = nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    Block* const block = first[i];
    AddressRange& range = RangeOf(*block);
    if (PageHandle* const elsewhere = HandleElsewhere(*block)) {
      --elsewhere->unmaps;
      range.SetHandle(block->data, block->size, nullptr);
    } else if (PageHandle* const handle = range.HandleAt(block->data)) {
      range.SetHandle(block->data, block->size, nullptr);
      --handle_count_;
      refused_bytes_ -= handle->bytes;
      handle->next = std::exchange(handles, handle);
    }
    MakeHole(block);
  }
  return handles;
}

bool VirtualMemoryAllocator::UnmapTaken(std::span<Block*> retired,
                                        std::size_t* released) noexcept {
  std::sort(retired.begin(), retired.end(),
            [](const Block* a, const Block* b) { return a->data < b->data; });
  bool are_all_unmapped = true;
  for (std::size_t i = 0; i < retired.size();) {
    Block* const* const first = &retired[i];
    std::byte* const at = first[0]->data;
    std::size_t bytes = 0;
    std::size_t count = 0;
    while (i < retired.size() && retired[i]->data == at + bytes &&
           retired[i]->chunk == first[0]->chunk) {
      bytes += retired[i++]->size;
      ++count;
    }
    TellOf(first, count, -1);
    PageHandle* handles = nullptr;
    if (Unmap(at, bytes) == Status::kSuccess) {
      const std::lock_guard<ChainLock> guard(lock_);
      handles = MakeHoles(first, count);
      records_.Shed();
    } else {
      TellOf(first, count, +1);
      are_all_unmapped = false;
      const std::lock_guard<ChainLock> guard(lock_);
      for (std::size_t j = 0; j < count; ++j) RetireAgain(first[j]);
    }
    *released += ReleaseHandles(handles);
  }
  return are_all_unmapped;
}

std::size_t VirtualMemoryAllocator::ReleaseHandle(PageHandle* handle) noexcept {
  Status status = Status::kSuccess;
  pool().budget().ReturnPages(handle->bytes, [&] {
    status = ReleaseMemory(*handle);
    return status == Status::kSuccess;
  });
  if (status == Status::kSuccess) {
    const std::size_t bytes = handle->bytes;
    delete handle;
    return bytes;
  }
  const std::lock_guard<ChainLock> guard(lock_);
  Refuse(handle);
  return 0;
}

std::size_t VirtualMemoryAllocator::ReleaseHandles(
    PageHandle* handles) noexcept {
  std::size_t released = 0;
  while (handles != nullptr) {
    released += ReleaseHandle(std::exchange(handles, handles->next));
  }
  return released;
}

std::size_t VirtualMemoryAllocator::ReleaseRefused() noexcept {
  PageHandle* handles = nullptr;
  {
    const std::lock_guard<ChainLock> guard(lock_);
    if (refused_bytes_ == 0) return 0;
    handles = std::exchange(refused_, nullptr);
    for (const PageHandle* handle = handles; handle != nullptr;
         handle = handle->next) {
      refused_bytes_ -= handle->bytes;
    }
  }
  return ReleaseHandles(handles) + UnmapRetired(SIZE_MAX);
}

}  // namespace strata
