// Idle memory of VirtualMemoryAllocator: its functions as a ChunkHolder.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "strata/base/log.h"
#include "strata/strategy/virtual_memory/virtual_memory_allocator.h"

namespace strata {

using vmm::RangeOf;

void VirtualMemoryAllocator::DetachFree(std::size_t bytes,
                                        std::vector<FreeHandle>& handles,
                                        std::vector<Block*>& retired) noexcept {
  const auto joined = LockJoined();
  // Do not release memory that is still mapped at retired addresses.
  if (retired_count_ > retired.capacity()) return;
  ForEachFreeHandle([&](Block& block, PageHandle& handle) {
    if (handles.size() == handles.capacity() || handle.unmaps != 0) return;
    handles.push_back({&handle, &block, block.offset_units, 0});
  });
  std::sort(handles.begin(), handles.end(),
            [](const FreeHandle& a, const FreeHandle& b) {
              if (a.handle->bytes != b.handle->bytes) {
                return a.handle->bytes > b.handle->bytes;
              }
              return a.handle->base > b.handle->base;
            });
  // The last one that suffices alone is the smallest such handle.
  std::size_t first = 0;
  while (first + 1 < handles.size() &&
         handles[first + 1].handle->bytes >= bytes) {
    ++first;
  }
  handles.erase(handles.begin(),
                handles.begin() + static_cast<std::ptrdiff_t>(first));
  std::size_t taken = 0;
  std::size_t count = 0;
  while (count < handles.size() && taken < bytes) {
    taken += handles[count++].handle->bytes;
  }
  handles.resize(count);
  // From the highest to the lowest, so that each cut is at the end of the rest
  // of its free block.
  std::sort(handles.begin(), handles.end(),
            [](const FreeHandle& a, const FreeHandle& b) {
              return a.handle->base > b.handle->base;
            });
  count = 0;
  while (count < handles.size() && records_.Has(2)) {
    TakeFreeHandle(handles[count++]);
  }
  handles.resize(count);
  if (count == 0) return;
  // Their retired addresses.
  for (const FreeHandle& free : handles) free.handle->is_leaving = true;
  TakeRetired(Retired::kLeaving, retired);
  for (const FreeHandle& free : handles) free.handle->is_leaving = false;
}

std::size_t VirtualMemoryAllocator::ReleaseFree(std::size_t bytes,
                                                Wait wait) noexcept {
  if (device_ == nullptr || bytes == 0) return 0;
  std::size_t released = ReleaseRefused();
  while (released < bytes) {
    const std::size_t step = ReleaseMapped(bytes - released, wait);
    released += step;
    // Other threads may have used up the records.
    if (step == 0 || IdlePageBytes() == 0) break;
  }
  return released;
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
    // Each handle may be split from its block; the slab holds the records
    // ready.
    RecordStock supply(RecordSlab::Instance());
    if (!supply.Fill(2 * count)) return 0;
  } catch (const std::bad_alloc&) {
    return 0;
  }
  std::vector<Block*> retired;
  if (!ReserveForRetired(retired, SIZE_MAX)) return 0;
  DetachFree(bytes, handles, retired);
  if (handles.empty()) return 0;
  // The stream may have reused and freed one of them before it was detached.
  std::size_t released = 0;
  if (wait == Wait::kForStream ? AwaitStream() : IdleIsDone()) {
    if (UnmapTaken(retired, &released)) {
      return released + ReleaseDetached(handles);
    }
    // The handles may still be mapped at an address that could not be unmapped.
    // UnmapTaken has retired that address again.
    retired.clear();
  }
  RestoreDetached(handles, retired);
  return released;
}

void VirtualMemoryAllocator::RestoreDetached(
    std::span<const FreeHandle> handles,
    std::span<Block* const> retired) noexcept {
  RestoreGranted(
      [&](std::uint64_t version) {
        for (const FreeHandle& free : handles) {
          if (free.handle->access_version < version) {
            return Outdated{free.handle, free.handle->base};
          }
        }
        return Outdated();
      },
      [&] {
        for (const FreeHandle& free : handles) Restore(free.block);
        for (Block* block : retired) RetireAgain(block);
        records_.Shed();
      });
  pool().budget().NotifyIdle();
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
      RestoreDetached(std::span(handles).subspan(first, i - first), {});
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
      created_while_lent_ = 0;
      LimitCache();
      records_.Shed();
    }
    for (std::size_t j = first; j < i; ++j) {
      released += ReleaseHandle(handles[j].handle);
    }
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
  // The next range is twice the largest remaining one.
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
      pool().budget().UnclaimAddresses(bytes);
      continue;
    }
    STRATA_LOG(Error) << name() << ": " << bytes
                      << " bytes of addresses cannot be freed (" << status
                      << "); a later release tries again";
    const std::lock_guard<ChainLock> guard(lock_);
    range->next = unused_ranges_;
    unused_ranges_ = range.release();
  }
}

ChunkHolder::IdleInfo VirtualMemoryAllocator::Idle(
    std::size_t fit_bytes) const noexcept {
  IdleInfo idle = AutoGrowthAllocator::Idle(fit_bytes);
  const auto joined = LockJoined();
  const std::size_t page_bytes = IdlePageBytesLocked();
  const std::size_t with_lent = page_bytes + LentPageBytes();
  idle.bytes += page_bytes;
  idle.bytes_with_lent += with_lent;
  idle.system_bytes += with_lent;
  return idle;
}

std::size_t VirtualMemoryAllocator::GiveBackBestFit(
    std::size_t bytes) noexcept {
  std::size_t given = AutoGrowthAllocator::GiveBackBestFit(bytes);
  if (given == 0) given = ReleaseFree(bytes, Wait::kForStream);
  // Chunks that do not suffice alone.
  if (given < bytes) given += GiveBackIdle(bytes - given);
  return given;
}

std::size_t VirtualMemoryAllocator::GiveBackDone(
    std::size_t bytes, std::size_t least_bytes) noexcept {
  const std::size_t given =
      AutoGrowthAllocator::GiveBackDone(bytes, least_bytes);
  return given + ReleaseFree(bytes - std::min(bytes, given), Wait::kNever);
}

std::size_t VirtualMemoryAllocator::GiveBackAll() noexcept {
  std::size_t given = AutoGrowthAllocator::GiveBackAll();
  given += ReleaseFree(SIZE_MAX, Wait::kForStream) + UnmapRetired(SIZE_MAX);
  FreeRanges();
  return given;
}

void VirtualMemoryAllocator::GiveUpIdle() noexcept {
  AutoGrowthAllocator::GiveUpIdle();
  StreamTimeline* const timeline = chain_stream().timeline();
  if (timeline == nullptr) {
    ReleaseFree(SIZE_MAX, Wait::kForStream);
    FreeRanges();
    return;
  }
  // During a capture nothing returns to the driver, but later.
  const CaptureGate::Calm calm(*timeline->gate());
  if (!calm) return;
  ReleaseFree(SIZE_MAX, Wait::kNever);
  FreeRanges();
}

Allocation* VirtualMemoryAllocator::Lend(const LoanRequest& request) noexcept {
  // A request that would otherwise fail may also cost a wait.
  if (request.effort != LoanRequest::Effort::kOrder) {
    const std::lock_guard<ChainLock> guard(lock_);
    if (!has_no_chain_ && !VmmPolicy::MayLend(held())) return nullptr;
  }
  return AutoGrowthAllocator::Lend(request);
}

bool VirtualMemoryAllocator::EndLending(End end) noexcept {
  bool has_pages = false;
  {
    const std::lock_guard<ChainLock> guard(lock_);
    has_no_chain_ = true;
    // Pages that work may still use stay here, and can be lent meanwhile.
    has_pages = handle_count_ != 0;
  }
  const bool must_be_done = end == End::kWhenDone && has_pages;
  if (must_be_done && !IdleIsDone()) return false;
  const std::lock_guard<ChainLock> guard(lock_);
  // Without chain and loan, nobody can export memory from here on.
  if (pin_count_ != 0 || !EndLendingLocked()) return false;
  // The destructor need not ask again; a capture could begin meanwhile.
  if (must_be_done) is_over_ = true;
  return true;
}

}  // namespace strata
