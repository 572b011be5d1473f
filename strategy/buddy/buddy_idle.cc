// The idle chunks of a BuddyPool.

#include "strata/strategy/buddy/buddy_pool.h"

namespace strata {
namespace {

// Deletes a detached chunk and returns its memory. Null for null.
Allocation* MemoryOf(Chunk* chunk) {
  if (chunk == nullptr) return nullptr;
  Allocation* memory = chunk->memory;
  delete static_cast<BuddyChunk*>(chunk);
  return memory;
}

}  // namespace

IdleInfo BuddyPool::Idle(std::size_t fit_bytes) const noexcept {
  const auto joined = LockJoined();
  IdleInfo idle;
  idle.bytes = idle.bytes_with_lent = idle_.bytes();
  idle.system_bytes = idle_.system_bytes();
  idle_.FillInSizes(fit_bytes, idle);
  return idle;
}

Chunk* BuddyPool::Detach(Chunk* chunk) noexcept {
  if (chunk == nullptr) return nullptr;
  idle_.Remove(chunk);
  OrderOf(chunk->first).Remove(chunk->first);
  blocks_.RemoveChunk(chunk, records_);
  LimitCache();
  return chunk;
}

Allocation* BuddyPool::DetachIdle(std::size_t bytes) noexcept {
  Chunk* chunk = nullptr;
  {
    const auto joined = LockJoined();
    chunk = Detach(idle_.Smallest(bytes));
  }
  return MemoryOf(chunk);
}

Allocation* BuddyPool::DetachAnyIdle() noexcept {
  Chunk* chunk = nullptr;
  {
    const auto joined = LockJoined();
    chunk = Detach(idle_.first());
  }
  return MemoryOf(chunk);
}

}  // namespace strata
