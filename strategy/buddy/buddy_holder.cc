// Idle chunks of all pools: BuddyStrategy as a ChunkHolder.

#include <algorithm>

#include "strata/strategy/buddy/buddy_strategy.h"

namespace strata {

IdleInfo BuddyStrategy::Idle(std::size_t fit_bytes) const noexcept {
  IdleInfo idle;
  for (BuddyPool* pool = first_pool(); pool != nullptr; pool = pool->next) {
    const IdleInfo of_pool = pool->Idle(fit_bytes);
    idle.bytes += of_pool.bytes;
    idle.bytes_with_lent += of_pool.bytes;
    idle.system_bytes += of_pool.system_bytes;
    idle.largest = std::max(idle.largest, of_pool.largest);
    const std::size_t fit = of_pool.best_fit;
    if (fit != 0 && (idle.best_fit == 0 || fit < idle.best_fit)) {
      idle.best_fit = fit;
    }
  }
  return idle;
}

Allocation* BuddyStrategy::DetachIdle(std::size_t bytes) noexcept {
  // At least 1: chunks have at least one byte, and 0 would skip the sizes.
  const std::size_t fit_bytes = std::max<std::size_t>(bytes, 1);
  const std::size_t best = Idle(fit_bytes).best_fit;
  if (best == 0) return nullptr;
  for (BuddyPool* pool = first_pool(); pool != nullptr; pool = pool->next) {
    if (pool->Idle(fit_bytes).best_fit != best) continue;
    if (Allocation* memory = pool->DetachIdle(bytes)) return memory;
  }
  return nullptr;
}

std::size_t BuddyStrategy::GiveBackBestFit(std::size_t bytes) noexcept {
  Allocation* memory = DetachIdle(bytes);
  if (memory == nullptr) return 0;
  return source_.Give(memory, WaitForWork());
}

std::size_t BuddyStrategy::OfferIdle(std::size_t bytes) noexcept {
  Allocation* memory = DetachIdle(bytes);
  if (memory == nullptr) return 0;
  const std::size_t offered = memory->size();
  source_.Offer(memory);
  return offered;
}

std::size_t BuddyStrategy::GiveBackAll() noexcept {
  TakeInAll();
  // Linked by Block::next, because the records of chunks are in no list.
  Block* detached = nullptr;
  for (BuddyPool* pool = first_pool(); pool != nullptr; pool = pool->next) {
    while (Allocation* memory = pool->DetachIdle(/*bytes=*/0)) {
      memory->block()->next = detached;
      detached = memory->block();
    }
  }
  std::size_t bytes = GiveLeftHuge(/*may_wait=*/true);
  if (detached == nullptr) return bytes;
  const bool is_done = WaitForWork();
  while (detached != nullptr) {
    Block* next = detached->next;
    bytes += source_.Give(detached->allocation(), is_done);
    detached = next;
  }
  return bytes;
}

std::size_t BuddyStrategy::GiveBackDone(
    const GiveBackRequest& request) noexcept {
  if (!IdleIsDone()) return 0;
  std::size_t given = 0;
  while (given < request.bytes) {
    const std::size_t largest = Idle(/*fit_bytes=*/1).largest;
    if (largest < request.least_bytes) break;
    Allocation* const memory = DetachIdle(largest);
    if (memory == nullptr) break;
    // A stream may have reused and freed it before it was detached.
    const std::size_t got = source_.Give(memory, IdleIsDone());
    if (got == 0) break;
    given += got;
  }
  return given;
}

}  // namespace strata
