// The idle chunks of AutoGrowthAllocator: what its ChunkHolder side does.

#include <glog/logging.h>

#include <algorithm>
#include <mutex>

#include "strata/allocation/size.h"
#include "strata/strategy/auto_growth_allocator.h"

namespace strata {

Chunk* AutoGrowthAllocator::DetachIdle(std::size_t bytes) noexcept {
  Chunk* best = nullptr;
  for (Chunk* chunk = idle_; chunk != nullptr; chunk = chunk->idle_next) {
    const std::size_t size = chunk->memory->size();
    if (size >= bytes && (best == nullptr || size < best->memory->size())) {
      best = chunk;
    }
  }
  if (best != nullptr) Detach(best);
  return best;
}

void AutoGrowthAllocator::Detach(Chunk* chunk) noexcept {
  UnlinkIdle(chunk);
  index(static_cast<Pool>(chunk->pool)).Remove(chunk->first);
  blocks_.RemoveChunk(chunk, records_);
}

std::size_t AutoGrowthAllocator::ReturnToSystem(Chunk* chunk) noexcept {
  const std::size_t bytes = chunk->memory->size();
  pool_->DoFree(chunk->memory);
  delete chunk;
  return bytes;
}

std::size_t AutoGrowthAllocator::IdleBytes() const noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  return idle_bytes_;
}

std::size_t AutoGrowthAllocator::IdleSystemBytes() const noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  return idle_system_bytes_ + lending_system_bytes_;
}

std::size_t AutoGrowthAllocator::SmallestIdle(
    std::size_t bytes) const noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  std::size_t best = 0;
  for (const Chunk* chunk = idle_; chunk != nullptr; chunk = chunk->idle_next) {
    const std::size_t size = chunk->memory->size();
    if (size >= bytes && (best == 0 || size < best)) best = size;
  }
  return best;
}

std::size_t AutoGrowthAllocator::LargestIdle() const noexcept {
  const std::lock_guard<SpinLock> guard(lock_);
  std::size_t largest = 0;
  for (const Chunk* chunk = idle_; chunk != nullptr; chunk = chunk->idle_next) {
    largest = std::max(largest, chunk->memory->size());
  }
  return largest;
}

bool AutoGrowthAllocator::IdleIsDone() noexcept { return stream_->IsDone(); }

std::size_t AutoGrowthAllocator::GiveBack(std::size_t bytes) noexcept {
  Chunk* chunk = nullptr;
  {
    const std::lock_guard<SpinLock> guard(lock_);
    chunk = DetachIdle(bytes);
  }
  if (chunk == nullptr) return 0;
  stream_->Synchronize();
  return ReturnToSystem(chunk);
}

std::size_t AutoGrowthAllocator::OfferIdle(std::size_t bytes) noexcept {
  Chunk* chunk = nullptr;
  {
    const std::lock_guard<SpinLock> guard(lock_);
    chunk = DetachIdle(bytes);
  }
  if (chunk == nullptr) return 0;
  const std::size_t offered = chunk->memory->size();
  pool_->Offer(chunk->memory, *stream_);
  delete chunk;
  return offered;
}

std::size_t AutoGrowthAllocator::GiveBackAll() noexcept {
  // Chunks of which only loans are in use become idle.
  if (pool_->has_lenders()) pool_->RecallLoans(/*wait=*/true);
  return GiveBackIdle();
}

std::size_t AutoGrowthAllocator::GiveBackIdle() noexcept {
  Chunk* chunks = nullptr;
  {
    const std::lock_guard<SpinLock> guard(lock_);
    while (Chunk* chunk = idle_) {
      Detach(chunk);
      chunk->next = chunks;
      chunks = chunk;
    }
  }
  if (chunks == nullptr) return 0;
  const Status status = stream_->Synchronize();
  LOG_IF(ERROR, status != Status::kSuccess)
      << "auto_growth: giving chunks back although their stream could not be "
      << "waited for: " << ToString(status);
  std::size_t bytes = 0;
  while (chunks != nullptr) {
    Chunk* next = chunks->next;
    bytes += ReturnToSystem(chunks);
    chunks = next;
  }
  return bytes;
}

}  // namespace strata
