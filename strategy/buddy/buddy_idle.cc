// The idle chunks of a BuddyPool.

#include <algorithm>
#include <mutex>

#include "strata/allocation/chunk_holder.h"
#include "strata/allocation/size.h"
#include "strata/strategy/buddy/buddy_pool.h"

namespace strata {
namespace {

// The memory of a chunk that was detached; the chunk is gone. Null for null.
Allocation* MemoryOf(Chunk* chunk) {
  if (chunk == nullptr) return nullptr;
  Allocation* memory = chunk->memory;
  delete static_cast<BuddyChunk*>(chunk);
  return memory;
}

}  // namespace

void BuddyPool::LinkIdle(Chunk* chunk) noexcept {
  chunk->idle_previous = nullptr;
  chunk->idle_next = idle_;
  if (idle_ != nullptr) idle_->idle_previous = chunk;
  idle_ = chunk;
  idle_bytes_ += chunk->memory->size();
  idle_system_bytes_ += AlignUp(chunk->memory->size(), kSystemStepBytes);
}

void BuddyPool::UnlinkIdle(Chunk* chunk) noexcept {
  if (chunk->idle_previous != nullptr) {
    chunk->idle_previous->idle_next = chunk->idle_next;
  } else {
    idle_ = chunk->idle_next;
  }
  if (chunk->idle_next != nullptr) {
    chunk->idle_next->idle_previous = chunk->idle_previous;
  }
  idle_bytes_ -= chunk->memory->size();
  idle_system_bytes_ -= AlignUp(chunk->memory->size(), kSystemStepBytes);
}

Chunk* BuddyPool::FindIdle(std::size_t bytes) const noexcept {
  Chunk* best = nullptr;
  for (Chunk* chunk = idle_; chunk != nullptr; chunk = chunk->idle_next) {
    const std::size_t size = chunk->memory->size();
    if (size >= bytes && (best == nullptr || size < best->memory->size())) {
      best = chunk;
    }
  }
  return best;
}

std::size_t BuddyPool::IdleBytes() const noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  return idle_bytes_;
}

std::size_t BuddyPool::IdleSystemBytes() const noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  return idle_system_bytes_;
}

std::size_t BuddyPool::SmallestIdle(std::size_t bytes) const noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  const Chunk* best = FindIdle(bytes);
  return best != nullptr ? best->memory->size() : 0;
}

std::size_t BuddyPool::LargestIdle() const noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  std::size_t largest = 0;
  for (const Chunk* chunk = idle_; chunk != nullptr; chunk = chunk->idle_next) {
    largest = std::max(largest, chunk->memory->size());
  }
  return largest;
}

void BuddyPool::Detach(Chunk* chunk) noexcept {
  if (chunk == nullptr) return;
  UnlinkIdle(chunk);
  OrderOf(chunk->first).Remove(chunk->first);
  blocks_.RemoveChunk(chunk, records_);
}

Allocation* BuddyPool::DetachIdle(std::size_t bytes) noexcept {
  Chunk* chunk = nullptr;
  {
    const std::lock_guard<SpinLock> guard(lock_);
    chunk = FindIdle(bytes);
    Detach(chunk);
  }
  return MemoryOf(chunk);
}

Allocation* BuddyPool::DetachAnyIdle() noexcept {
  Chunk* chunk = nullptr;
  {
    const std::lock_guard<SpinLock> guard(lock_);
    chunk = idle_;
    Detach(chunk);
  }
  return MemoryOf(chunk);
}

}  // namespace strata
