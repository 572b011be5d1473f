// The idle chunks of all pools: what the ChunkHolder side of a BuddyStrategy
// does.

#include <algorithm>

#include "strata/strategy/buddy/buddy_strategy.h"

namespace strata {

std::size_t BuddyStrategy::IdleBytes() const noexcept {
  std::size_t bytes = 0;
  for (BuddyPool* pool = first_pool(); pool != nullptr; pool = pool->next) {
    bytes += pool->IdleBytes();
  }
  return bytes;
}

std::size_t BuddyStrategy::IdleSystemBytes() const noexcept {
  std::size_t bytes = 0;
  for (BuddyPool* pool = first_pool(); pool != nullptr; pool = pool->next) {
    bytes += pool->IdleSystemBytes();
  }
  return bytes;
}

std::size_t BuddyStrategy::SmallestIdle(std::size_t bytes) const noexcept {
  std::size_t best = 0;
  for (BuddyPool* pool = first_pool(); pool != nullptr; pool = pool->next) {
    const std::size_t size = pool->SmallestIdle(bytes);
    if (size != 0 && (best == 0 || size < best)) best = size;
  }
  return best;
}

std::size_t BuddyStrategy::LargestIdle() const noexcept {
  std::size_t largest = 0;
  for (BuddyPool* pool = first_pool(); pool != nullptr; pool = pool->next) {
    largest = std::max(largest, pool->LargestIdle());
  }
  return largest;
}

Allocation* BuddyStrategy::DetachIdle(std::size_t bytes) noexcept {
  const std::size_t best = SmallestIdle(bytes);
  if (best == 0) return nullptr;
  for (BuddyPool* pool = first_pool(); pool != nullptr; pool = pool->next) {
    if (pool->SmallestIdle(bytes) != best) continue;
    if (Allocation* memory = pool->DetachIdle(bytes)) return memory;
  }
  return nullptr;
}

std::size_t BuddyStrategy::GiveBack(std::size_t bytes) noexcept {
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
  // Linked by Block::next: the records of chunks are in no list.
  Block* detached = nullptr;
  for (BuddyPool* pool = first_pool(); pool != nullptr; pool = pool->next) {
    while (Allocation* memory = pool->DetachAnyIdle()) {
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

std::size_t BuddyStrategy::GiveBackDone(std::size_t bytes) noexcept {
  if (!IdleIsDone()) return 0;
  std::size_t given = 0;
  while (given < bytes) {
    Allocation* const memory = DetachIdle(LargestIdle());
    if (memory == nullptr) break;
    // A stream may have got, used and freed it before it was detached.
    const std::size_t got = source_.Give(memory, IdleIsDone());
    if (got == 0) break;
    given += got;
  }
  return given;
}

}  // namespace strata
