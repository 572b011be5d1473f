// How VirtualMemoryAllocator gives memory back: the ChunkHolder side.

#include <glog/logging.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "strata/strategy/virtual_memory/virtual_memory_allocator.h"

namespace strata {

void VirtualMemoryAllocator::TakeRetired(
    bool all, std::vector<Block*>& retired) noexcept {
  Block* next = nullptr;
  for (Block* block = retired_.first();
       block != nullptr && retired.size() < retired.capacity(); block = next) {
    next = block->free_next;
    if (!all && !epochs_.IsOver(block->offset_units)) continue;
    retired_.Remove(block);
    --retired_count_;
    blocks_.SetUnusable(block, BlockList::kPendingPool);
    retired.push_back(block);
  }
}

bool VirtualMemoryAllocator::ReserveForRetired(std::vector<Block*>& retired) {
  std::size_t count = 0;
  {
    const std::lock_guard<ChainLock> guard(lock_);
    count = retired_count_;
  }
  try {
    retired.reserve(count);
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

void VirtualMemoryAllocator::UnmapRetired() noexcept {
  StreamTimeline* const timeline = chain_stream().timeline();
  if (timeline == nullptr || !timeline->MayTouch()) return;
  std::vector<Block*> retired;
  if (!ReserveForRetired(retired) || retired.capacity() == 0) return;
  LookAtStream();
  {
    const std::lock_guard<ChainLock> guard(lock_);
    epochs_.Update(*timeline);
    TakeRetired(/*all=*/false, retired);
  }
  timeline->AcquireDone();
  UnmapTaken(retired);
}

void VirtualMemoryAllocator::UnmapTaken(std::vector<Block*>& retired) noexcept {
  std::sort(retired.begin(), retired.end(),
            [](const Block* a, const Block* b) { return a->data < b->data; });
  for (std::size_t i = 0; i < retired.size();) {
    const std::size_t first = i;
    std::byte* const at = retired[first]->data;
    std::size_t bytes = 0;
    while (i < retired.size() && retired[i]->data == at + bytes &&
           retired[i]->chunk == retired[first]->chunk) {
      pool().TellOfRange(retired[i]->data, retired[i]->size, -1);
      bytes += retired[i++]->size;
    }
    const Status status = Unmap(at, bytes);
    const std::lock_guard<ChainLock> guard(lock_);
    for (std::size_t j = first; j < i; ++j) {
      // Otherwise its addresses stay pending: nothing uses them any more.
      if (status == Status::kSuccess) MakeHole(retired[j]);
    }
    records_.Shed();
  }
}

void VirtualMemoryAllocator::DetachFree(std::size_t bytes,
                                        std::vector<FreeHandle>& handles,
                                        std::vector<Block*>& retired) noexcept {
  const Joined joined(*this);
  // Memory is not released while it is still mapped elsewhere.
  if (retired_count_ > retired.capacity()) return;
  ForEachFreeHandle([&](Block& block, PageHandle& handle) {
    if (handles.size() == handles.capacity()) return;
    handles.push_back({&handle, &block, block.offset_units, false});
  });
  std::sort(handles.begin(), handles.end(),
            [](const FreeHandle& a, const FreeHandle& b) {
              if (a.handle->bytes != b.handle->bytes) {
                return a.handle->bytes > b.handle->bytes;
              }
              return a.handle->base > b.handle->base;
            });
  // The last one that suffices alone is the smallest of these.
  std::size_t first = 0;
  while (first + 1 < handles.size() &&
         handles[first + 1].handle->bytes >= bytes) {
    ++first;
  }
  handles.erase(handles.begin(),
                handles.begin() + static_cast<std::ptrdiff_t>(first));
  std::size_t taken = 0;
  std::size_t count = 0;
  for (FreeHandle& free : handles) {
    if (taken >= bytes || !records_.Has(2)) break;
    TakeFreeHandle(free);
    taken += free.handle->bytes;
    ++count;
  }
  handles.resize(count);
  if (count != 0) TakeRetired(/*all=*/true, retired);
}

std::size_t VirtualMemoryAllocator::ReleaseFree(std::size_t bytes,
                                                Wait wait) noexcept {
  if (device_ == nullptr || bytes == 0) return 0;
  const std::size_t refused = ReleaseRefused();
  if (refused >= bytes) return refused;
  bytes -= refused;
  return refused + ReleaseMapped(bytes, wait);
}

std::size_t VirtualMemoryAllocator::ReleaseMapped(std::size_t bytes,
                                                  Wait wait) noexcept {
  if (wait == Wait::kNever && !IdleIsDone()) return 0;
  std::vector<FreeHandle> handles;
  try {
    std::size_t count = 0;
    {
      const std::lock_guard<ChainLock> guard(lock_);
      count = handle_count_;
    }
    if (count == 0) return 0;
    handles.reserve(count);
    // Each may be cut out of its block; the slab keeps the records at hand.
    RecordSupply supply(RecordSlab::Instance());
    if (!supply.Fill(2 * count)) return 0;
  } catch (const std::bad_alloc&) {
    return 0;
  }
  std::vector<Block*> retired;
  if (!ReserveForRetired(retired)) return 0;
  DetachFree(bytes, handles, retired);
  if (handles.empty()) return 0;
  // The stream may have used and freed one of them before it was detached.
  if (wait == Wait::kForStream ? AwaitStream() : IdleIsDone()) {
    UnmapTaken(retired);
    return ReleaseDetached(handles);
  }
  {
    const Joined joined(*this);
    for (const FreeHandle& free : handles) Restore(free.block);
    for (Block* block : retired) {
      blocks_.SetUnusable(block, BlockList::kRetiredPool);
      block->offset_units = std::min(block->offset_units, epochs_.current());
      retired_.Insert(block);
      ++retired_count_;
    }
    records_.Shed();
  }
  CatchUpGrants();
  return 0;
}

std::size_t VirtualMemoryAllocator::ReleaseDetached(
    std::vector<FreeHandle>& handles) noexcept {
  std::sort(handles.begin(), handles.end(),
            [](const FreeHandle& a, const FreeHandle& b) {
              return a.handle->base < b.handle->base;
            });
  std::size_t released = 0;
  for (std::size_t i = 0; i < handles.size();) {
    const std::size_t first = i;
    std::byte* const at = handles[first].handle->base;
    std::size_t bytes = 0;
    while (i < handles.size() && handles[i].handle->base == at + bytes &&
           handles[i].block->chunk == handles[first].block->chunk) {
      bytes += handles[i++].handle->bytes;
    }
    const auto tell = [&](int count_change) {
      for (std::size_t j = first; j < i; ++j) {
        const PageHandle& handle = *handles[j].handle;
        pool().TellOfRange(handle.base, handle.bytes, count_change);
      }
    };
    tell(-1);
    const Status unmapped = Unmap(at, bytes);
    if (unmapped != Status::kSuccess) {
      tell(+1);
      {
        const Joined joined(*this);
        for (std::size_t j = first; j < i; ++j) Restore(handles[j].block);
      }
      CatchUpGrants();
      continue;
    }
    {
      const std::lock_guard<ChainLock> guard(lock_);
      for (std::size_t j = first; j < i; ++j) {
        Block* const block = handles[j].block;
        RangeOf(*block).SetHandle(block->data, block->size, nullptr);
        --handle_count_;
        MakeHole(block);
      }
      LimitCache();
      records_.Shed();
    }
    for (std::size_t j = first; j < i; ++j) {
      released += ReleaseHandle(handles[j].handle);
    }
  }
  return released;
}

std::size_t VirtualMemoryAllocator::ReleaseHandle(PageHandle* handle) noexcept {
  Status status = Status::kSuccess;
  pool().ReturnPages(handle->bytes, [&] {
    status = device_->ReleaseMemory(handle->memory);
    return status == Status::kSuccess;
  });
  if (status == Status::kSuccess) {
    const std::size_t bytes = handle->bytes;
    delete handle;
    return bytes;
  }
  LOG(ERROR) << name() << ": " << handle->bytes << " bytes cannot be released ("
             << status << "); a later release tries again";
  const std::lock_guard<ChainLock> guard(lock_);
  handle->next = std::exchange(refused_, handle);
  return 0;
}

std::size_t VirtualMemoryAllocator::ReleaseRefused() noexcept {
  PageHandle* handle = nullptr;
  {
    const std::lock_guard<ChainLock> guard(lock_);
    handle = std::exchange(refused_, nullptr);
  }
  std::size_t released = 0;
  while (handle != nullptr) {
    PageHandle* const next = handle->next;
    released += ReleaseHandle(handle);
    handle = next;
  }
  return released;
}

void VirtualMemoryAllocator::DetachRanges() noexcept {
  const std::lock_guard<ChainLock> guard(lock_);
  Chunk* next = nullptr;
  for (Chunk* chunk = blocks_.first_chunk(); chunk != nullptr; chunk = next) {
    next = chunk->next;
    if (!chunk->is_range || chunk->first->next != nullptr) continue;
    auto* const range = static_cast<AddressRange*>(chunk);
    holes_[range->pool].Remove(chunk->first);
    blocks_.RemoveRange(chunk, records_);
    --range_count_;
    chunk->next = std::exchange(unused_ranges_, range);
  }
  // The next range is twice the largest that is left.
  last_range_bytes_ = {};
  for (Chunk* chunk = blocks_.first_chunk(); chunk != nullptr;
       chunk = chunk->next) {
    if (!chunk->is_range) continue;
    const auto& range = *static_cast<const AddressRange*>(chunk);
    std::size_t& last = last_range_bytes_[range.pool];
    last = std::max(last, range.size_bytes());
  }
}

void VirtualMemoryAllocator::FreeRanges() noexcept {
  DetachRanges();
  Chunk* ranges = nullptr;
  {
    const std::lock_guard<ChainLock> guard(lock_);
    ranges = std::exchange(unused_ranges_, nullptr);
  }
  while (ranges != nullptr) {
    std::unique_ptr<AddressRange> range(static_cast<AddressRange*>(ranges));
    ranges = ranges->next;
    const std::size_t bytes = range->size_bytes();
    const Status status = range->Free();
    if (status == Status::kSuccess) {
      pool().UnclaimAddresses(bytes);
      continue;
    }
    LOG(ERROR) << name() << ": " << bytes
               << " bytes of addresses cannot be freed (" << status
               << "); a later release tries again";
    const std::lock_guard<ChainLock> guard(lock_);
    range->next = unused_ranges_;
    unused_ranges_ = range.release();
  }
}

std::size_t VirtualMemoryAllocator::IdleBytes() const noexcept {
  return AutoGrowthAllocator::IdleBytes() + FreeHandleBytes();
}

std::size_t VirtualMemoryAllocator::IdleChunkBytes() const noexcept {
  return AutoGrowthAllocator::IdleChunkBytes() + FreeHandleBytes();
}

std::size_t VirtualMemoryAllocator::IdleSystemBytes() const noexcept {
  return AutoGrowthAllocator::IdleSystemBytes() + FreeHandleBytes();
}

std::size_t VirtualMemoryAllocator::GiveBack(std::size_t bytes) noexcept {
  const std::size_t given = AutoGrowthAllocator::GiveBack(bytes);
  return given != 0 ? given : ReleaseFree(bytes, Wait::kForStream);
}

std::size_t VirtualMemoryAllocator::GiveBackLargest(
    std::size_t bytes, std::size_t least) noexcept {
  const std::size_t given = AutoGrowthAllocator::GiveBackLargest(bytes, least);
  return given >= bytes ? given
                        : given + ReleaseFree(bytes - given, Wait::kForStream);
}

std::size_t VirtualMemoryAllocator::GiveBackAll() noexcept {
  const std::size_t given = AutoGrowthAllocator::GiveBackAll() +
                            ReleaseFree(SIZE_MAX, Wait::kForStream);
  UnmapRetired();
  FreeRanges();
  return given;
}

std::size_t VirtualMemoryAllocator::GiveBackDone(std::size_t bytes) noexcept {
  const std::size_t given = AutoGrowthAllocator::GiveBackDone(bytes);
  return given >= bytes ? given
                        : given + ReleaseFree(bytes - given, Wait::kNever);
}

void VirtualMemoryAllocator::GiveUpIdle() noexcept {
  AutoGrowthAllocator::GiveUpIdle();
  const bool has_timeline = chain_stream().timeline() != nullptr;
  ReleaseFree(SIZE_MAX, has_timeline ? Wait::kNever : Wait::kForStream);
  FreeRanges();
}

bool VirtualMemoryAllocator::EndLending() noexcept {
  bool has_pages = false;
  {
    const std::lock_guard<ChainLock> guard(lock_);
    was_retired_ = true;
    if (pin_count_ != 0) return false;
    // Pages that work may still use stay here, and can be lent meanwhile.
    has_pages = handle_count_ != 0;
  }
  if (has_pages && !IdleIsDone()) return false;
  return AutoGrowthAllocator::EndLending();
}

}  // namespace strata
