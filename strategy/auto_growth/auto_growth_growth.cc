// Growth: a request that no free block of the stream serves.

#include <algorithm>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "strata/strategy/auto_growth/auto_growth_allocator.h"

namespace strata {

Allocation* AutoGrowthAllocator::Grow(const Request& request, Pool own,
                                      std::size_t size,
                                      Failure& failure) noexcept {
  RecordStock supply(RecordSlab::Instance());
  std::unique_ptr<Chunk> chunk(new (std::nothrow) Chunk());
  // One record for the chunk, one for the rest that the request leaves of it.
  if (chunk == nullptr || !supply.Fill(2)) {
    failure = Refusal(Failure::Reason::kHostMemory, request);
    return nullptr;
  }
  if (policy_.free_when_no_cache_hit() && !IsDuringCapture()) GiveBackIdle();

  Block* block = nullptr;
  chunk->memory = BorrowFor(own, size, &block);
  const bool was_borrowed = block != nullptr;
  if (chunk->memory == nullptr && block == nullptr) {
    failure = Failure();
    if (!GrowByPages(own, size, &block, failure)) {
      chunk->memory = TakeFromSystem(own, size, failure);
    }
    if (chunk->memory == nullptr && block == nullptr &&
        failure.IsExhaustion()) {
      // A wait of the stream is better than a refused request, and so is a
      // loan that serves one request only.
      for (const std::size_t bytes : {policy_.LoanSize(size), size}) {
        if (chunk->memory != nullptr) break;
        chunk->memory =
            Borrow(bytes, LoanRequest::Effort::kOrder, HolderList::Asked::kAll);
      }
    }
  }
  {
    const auto joined = LockJoined();
    records_.TakeFrom(supply);
    if (block == nullptr && chunk->memory != nullptr) {
      block = Publish(*this, own, chunk.release(), size);
    } else if (block == nullptr) {
      block = FindAmongAll(own, size);
      failure.largest_free_bytes = LargestFree();
      failure.in_use_bytes = taken_bytes_ - lent_bytes_;
    }
    if (block != nullptr && !was_borrowed) ++untold_takes_;
  }
  if (block == nullptr) {
    failure.requested_bytes = request.bytes;
    return nullptr;
  }
  block->requested = request.bytes;
  return block->allocation();
}

Allocation* AutoGrowthAllocator::TakeFromSystem(Pool own, std::size_t size,
                                                Failure& failure) noexcept {
  bool is_first = false;
  {
    const std::lock_guard<ChainLock> guard(lock_);
    is_first = !std::exchange(has_grown_[static_cast<std::size_t>(own)], true);
  }
  const AutoGrowthPolicy::Sizes sizes = PlanGrowth(own, size, is_first);
  const bool may_give_back = !IsDuringCapture() && !IsOfGraphs();
  if (policy_.give_back_limit() > 0 && may_give_back) {
    pool().market().GiveBackBeforeGrowth(sizes[0], policy_.give_back_limit());
  }
  Allocation* memory = TakeChunk(sizes, sizes[0], failure);
  if (memory == nullptr && failure.IsExhaustion() && may_give_back &&
      policy_.replaces_idle()) {
    // The smallest idle chunk that covers the request makes room. Pages may be
    // fewer bytes; then `failure` must say how much is left to release.
    const std::size_t given = GiveBackBestFit(size);
    if (given != 0) memory = TakeChunk(sizes, std::max(given, size), failure);
  }
  if (memory == nullptr && is_first) {
    // The first growth failed: the next one is the first again.
    const std::lock_guard<ChainLock> guard(lock_);
    has_grown_[static_cast<std::size_t>(own)] = false;
  }
  return memory;
}

AutoGrowthPolicy::Sizes AutoGrowthAllocator::PlanGrowth(
    Pool own, std::size_t size, bool is_first) noexcept {
  const std::size_t room =
      pool().budget().RoomBytes(chain_stream().memory_device());
  std::size_t spare_bytes = 0;
  {
    const auto joined = LockJoined();
    spare_bytes = AutoGrowthPolicy::SpareOfGrowth(room, unused_bytes());
  }
  return policy_.GrowthSizes({.size = size,
                              .pool = own,
                              .is_first = is_first,
                              .is_limited = pool().limit_bytes() != 0,
                              .spare_bytes = spare_bytes});
}

Allocation* AutoGrowthAllocator::TakeChunk(const AutoGrowthPolicy::Sizes& sizes,
                                           std::size_t most_bytes,
                                           Failure& failure) noexcept {
  for (const std::size_t bytes : sizes) {
    if (bytes == 0 || bytes > most_bytes) continue;
    Allocation* memory = pool().TryAllocateFor(
        Request{bytes, FreeIndex::kGranuleBytes}, chain_stream(), failure);
    if (memory != nullptr || !failure.IsExhaustion()) return memory;
  }
  return nullptr;
}

}  // namespace strata
