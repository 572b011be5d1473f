// Frees: a block joins its free neighbours.

#include <algorithm>
#include <mutex>

#include "strata/strategy/auto_growth/auto_growth_allocator.h"

namespace strata {

void AutoGrowthAllocator::Join(Block* cached) noexcept {
  while (cached != nullptr) {
    Block* const next = cached->free_next;
    // The current epoch is right: JoinAll runs before an epoch ends.
    Insert(cached, epochs_.current());
    cached = next;
  }
  records_.Shed();
}

bool AutoGrowthAllocator::GiveCached(Block* block) noexcept {
  Insert(block, epochs_.current());
  records_.Shed();
  return true;
}

// With kInRanges, neighbours may be open blocks or holes.
template <bool kInRanges>
[[gnu::always_inline]] inline void AutoGrowthAllocator::Place(
    Block* block, FreeEpochs::Epoch epoch) noexcept {
  taken_bytes_ -= block->size;
  block->flags = 0;
  const auto take_out = [this](Block* neighbour) {
    if (kInRanges && IsInOpenBlocks(*neighbour)) [[unlikely]] {
      RemoveFree(neighbour);
    } else {
      index(*neighbour).Remove(neighbour);
    }
  };
  if (Block* previous = block->previous; BlockList::IsFree(previous)) {
    take_out(previous);
    epoch = std::max(epoch, previous->offset_units);
    blocks_.Coalesce(previous, block, records_);
    block = previous;
  }
  if (Block* next = block->next; BlockList::IsFree(next)) {
    if (kInRanges && IsInOpenBlocks(*next)) {
      // It stays in its list, and gets larger.
      next->offset_units = std::max(epoch, next->offset_units);
      blocks_.CoalesceLow(block, next, records_);
      return;
    }
    take_out(next);
    epoch = std::max(epoch, next->offset_units);
    blocks_.Coalesce(block, next, records_);
  }
  block->is_free = true;
  block->offset_units = epoch;
  if (kInRanges && OpenBlocks::IsOpen(*block)) [[unlikely]] {
    return AddFree(block);
  }
  index(*block).Insert(block);
  if (BlockList::IsWholeChunk(block)) {
    IdleListOf(block->chunk).Add(block->chunk);
  }
}

void AutoGrowthAllocator::InsertFree(Block* block,
                                     FreeEpochs::Epoch epoch) noexcept {
  Place</*kInRanges=*/true>(block, epoch);
}

void AutoGrowthAllocator::Insert(Block* block,
                                 FreeEpochs::Epoch epoch) noexcept {
  ++gives_;
  if (has_ranges_) return InsertFree(block, epoch);
  Place</*kInRanges=*/false>(block, epoch);
}

void AutoGrowthAllocator::AddFree(Block* block) noexcept {
  if (!OpenBlocks::IsOpen(*block)) return index(*block).Insert(block);
  open_[block->pool].Insert(block);
  block->pool = static_cast<std::uint8_t>(block->pool + kPools);
}

void AutoGrowthAllocator::RemoveFree(Block* block) noexcept {
  if (!IsInOpenBlocks(*block)) return index(*block).Remove(block);
  block->pool = static_cast<std::uint8_t>(block->pool - kPools);
  open_[block->pool].Remove(block);
}

void AutoGrowthAllocator::DoFree(Allocation* allocation) noexcept {
  Chunk* idle = nullptr;
  {
    const std::lock_guard<ChainLock> guard(lock_);
    Block* block = allocation->block();
    Give(block);
    if (policy_.free_idle_chunk()) idle = Detach(idle_.first());
  }
  ReturnToSystem(idle);
}

}  // namespace strata
