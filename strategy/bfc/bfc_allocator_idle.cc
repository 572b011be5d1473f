// Idle regions of BfcAllocator: its functions as a ChunkHolder.

#include <algorithm>
#include <mutex>

#include "strata/base/size.h"
#include "strata/strategy/bfc/bfc_allocator.h"

namespace strata {

template <class Wants>
Chunk* BfcAllocator::TakeIdle(const Wants& wants) noexcept {
  const auto joined = LockJoined();
  Chunk* const regions = DetachIdle(wants);
  if (regions != nullptr) plan_.GaveBack(arena_.region_bytes());
  return regions;
}

std::size_t BfcAllocator::ReturnToSystem(Chunk* regions) noexcept {
  return regions != nullptr ? FreeRegions(regions, WaitForWork()) : 0;
}

std::size_t BfcAllocator::FreeRegions(Chunk* regions, bool is_done) noexcept {
  std::size_t given = 0;
  while (regions != nullptr) {
    auto* region = static_cast<BfcRegion*>(regions);
    regions = region->next;
    for (Block* piece = region->memory->block(); piece != nullptr;) {
      Block* next = piece->next;
      given += GiveToPool(piece->allocation(), is_done);
      piece = next;
    }
    {
      const std::lock_guard<SpinLock> guard(lock_);
      leaving_bytes_ -= region->size;
    }
    delete region;
  }
  return given;
}

void BfcAllocator::AwaitStamps() noexcept {
  if (options_.counter == nullptr || !options_.streams_are_all) return;
  {
    const std::lock_guard<SpinLock> guard(lock_);
    if (!arena_.has_waiting()) return;
  }
  const std::uint64_t count = options_.counter->Get();
  if (WaitForWork()) SetSafeFrontier(count + 1);
}

ChunkHolder::IdleInfo BfcAllocator::Idle(std::size_t fit_bytes) const noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  IdleInfo idle;
  ForEachIdle([&](const BfcRegion& one) {
    idle.bytes += one.size;
    for (const Block* piece = one.memory->block(); piece != nullptr;
         piece = piece->next) {
      idle.system_bytes += AlignUp(piece->size, kSystemStepBytes);
    }
    if (fit_bytes == 0) return;
    idle.largest = std::max(idle.largest, one.size);
    if (one.size >= fit_bytes &&
        (idle.best_fit == 0 || one.size < idle.best_fit)) {
      idle.best_fit = one.size;
    }
  });
  idle.bytes_with_lent = idle.bytes;
  return idle;
}

std::size_t BfcAllocator::GiveBackBestFit(std::size_t bytes) noexcept {
  AwaitStamps();
  Chunk* region = nullptr;
  {
    const auto joined = LockJoined();
    const BfcRegion* best = nullptr;
    ForEachIdle([&](const BfcRegion& one) {
      if (one.size >= bytes && (best == nullptr || one.size < best->size)) {
        best = &one;
      }
    });
    region = DetachIdle([best](const BfcRegion& one) { return &one == best; });
    if (region != nullptr) plan_.GaveBack(arena_.region_bytes());
  }
  return ReturnToSystem(region);
}

std::size_t BfcAllocator::GiveBackAll() noexcept {
  AwaitStamps();
  return ReturnToSystem(
      TakeIdle([](const BfcRegion& /*one*/) { return true; }));
}

std::size_t BfcAllocator::GiveBackDone(std::size_t bytes,
                                       std::size_t least_bytes) noexcept {
  if (!IdleIsDone()) return 0;
  std::size_t taken = 0;
  Chunk* const regions = TakeIdle([&](const BfcRegion& one) {
    if (taken >= bytes || one.size < least_bytes) return false;
    taken += one.size;
    return true;
  });
  // A stream may have reused and freed one of them before it was detached.
  return regions != nullptr ? FreeRegions(regions, IdleIsDone()) : 0;
}

}  // namespace strata
