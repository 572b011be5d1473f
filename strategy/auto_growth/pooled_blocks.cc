#include "strata/strategy/auto_growth/pooled_blocks.h"

#include <algorithm>
#include <utility>

namespace strata {

PooledBlocks::PooledBlocks(ChainState& state, const MemoryBudget& budget,
                           const AutoGrowthPolicy& policy)
    : policy_(policy), budget_(budget), lock_(state.lock), cache_(state.cache) {
  cache_.Configure(policy.front_cache().max_block_bytes(),
                   policy.granule_bytes(), policy.front_cache().searches());
}

bool PooledBlocks::MayCut(const Block& chunk, std::size_t size) const {
  if (policy_.maps_pages() && chunk.chunk->is_loan) {
    return AutoGrowthPolicy::MayCutLoan(chunk.size, size);
  }
  return policy_.MayCut(chunk.size, size, budget_.last_room_bytes(),
                        unused_bytes());
}

[[gnu::always_inline]] inline Block* PooledBlocks::MakeLive(
    Block* block) noexcept {
  ++takes_;
  taken_bytes_ += block->size;
  block->is_free = false;
  block->flags = kBlockLive;
  block->offset_units = 0;
  return block;
}

template <bool kInRanges>
[[gnu::always_inline]] inline Block* PooledBlocks::Cut(
    FreeIndex& blocks, Block* block, std::size_t size) noexcept {
  if (block->size - size >= kMinRemainderBytes) {
    Block* const rest = block;
    if (kInRanges) {
      block = blocks_.SplitLow(rest, size, records_.Pop());
      block->pool = rest->pool;
    } else {
      block = blocks_.Split(rest, rest->size - size, records_.Pop());
    }
    blocks.Insert(rest);
  }
  return MakeLive(block);
}

Block* PooledBlocks::CutOpen(Block* block, std::size_t size) noexcept {
  if (block->size - size < kMinRemainderBytes) {
    RemoveFree(block);
    return MakeLive(block);
  }
  Block* const rest = block;
  block = OpenBlocks::CutsLow(*rest)
              ? blocks_.SplitLow(rest, size, records_.Pop())
              : blocks_.Split(rest, rest->size - size, records_.Pop());
  block->pool = static_cast<std::uint8_t>(rest->pool - kPools);
  return MakeLive(block);
}

Block* PooledBlocks::Carve(Block* block, std::size_t size) noexcept {
  size = BytesToTake(*block, size);
  const bool split = block->size - size >= kMinRemainderBytes;
  if (split && !records_.Has(1)) return nullptr;
  Chunk* chunk = block->chunk;
  if (IsInOpenBlocks(*block)) return CutOpen(block, size);
  FreeIndex& blocks = index(*block);
  blocks.Remove(block);
  if (BlockList::IsWholeChunk(block)) UseIdle(chunk);
  return has_ranges_ ? Cut<true>(blocks, block, size)
                     : Cut<false>(blocks, block, size);
}

Block* PooledBlocks::Publish(ChunkHolder& owner, Pool pool, Chunk* chunk,
                             std::size_t size) noexcept {
  Block* block = records_.Pop();
  chunk->owner = &owner;
  blocks_.AddChunk(chunk, block);
  block->pool = static_cast<std::uint8_t>(pool);
  LimitCache();
  block->is_free = true;
  // Other streams may still use borrowed memory, until work that this stream
  // submits later.
  block->offset_units = epochs_.current();
  chunk->recalls_before_use = recalls_;
  size = BytesToTake(*block, size);
  return has_ranges_ ? Cut<true>(index(pool), block, size)
                     : Cut<false>(index(pool), block, size);
}

Block* PooledBlocks::FindAndCarve(Pool pool, std::size_t size) noexcept {
  const FreeIndex& blocks = index(pool);
  Block* block = blocks.FindBestFit(size);
  if (block != nullptr && !MayServe(*block, size)) {
    block = blocks.FindBest(
        size, [&](const Block& other) { return MayServe(other, size); });
  }
  if (block == nullptr) {
    block = open_[static_cast<std::size_t>(pool)].Find(size);
  }
  return block != nullptr ? Carve(block, size) : nullptr;
}

Block* PooledBlocks::FindAmongAll(Pool own, std::size_t size) noexcept {
  Block* block = FindAndCarve(own, size);
  for (std::size_t i = 0; i < AutoGrowthPolicy::kPoolCount; ++i) {
    if (block != nullptr) return block;
    block = FindAndCarve(Pool{static_cast<std::uint32_t>(i)}, size);
  }
  for (const FreeIndex& blocks : index_) {
    if (block != nullptr) return block;
    block = blocks.FindBest(size, [](const Block&) { return true; });
    if (block != nullptr) block = Carve(block, size);
  }
  return block;
}

[[gnu::always_inline]] inline Block* PooledBlocks::TakeBestFit(
    Pool pool, std::size_t size) noexcept {
  FreeIndex& blocks = index(pool);
  Block* block = blocks.TakeBestFit(size);
  if (block == nullptr) return nullptr;
  if (BlockList::IsWholeChunk(block)) {
    if (!MayCut(*block, size)) {
      blocks.Insert(block);
      return nullptr;
    }
    UseIdle(block->chunk);
    size = BytesToTake(*block, size);
  }
  return Cut</*kInRanges=*/false>(blocks, block, size);
}

[[gnu::always_inline]] inline Block* PooledBlocks::TakeInRanges(
    Pool pool, std::size_t size) noexcept {
  FreeIndex& blocks = index(pool);
  Block* block = blocks.TakeBestFit(size);
  if (block == nullptr) {
    Block* const open = open_[static_cast<std::size_t>(pool)].Find(size);
    return open != nullptr ? CutOpen(open, size) : nullptr;
  }
  if (BlockList::IsWholeChunk(block)) {
    blocks.Insert(block);
    return nullptr;
  }
  return Cut</*kInRanges=*/true>(blocks, block, size);
}

template <bool kInRanges>
[[gnu::always_inline]] inline Block* PooledBlocks::FindIn(
    std::size_t size) noexcept {
  const Pool pool = policy_.PoolOf(size);
  Block* block = nullptr;
  if (!cache_.is_sweep_due() && !records_.empty()) [[likely]] {
    block = kInRanges ? TakeInRanges(pool, size) : TakeBestFit(pool, size);
  }
  if (block == nullptr) [[unlikely]] {
    return FindSlowly(size);
  }
  cache_.NoteSearch(size);
  return block;
}

[[gnu::noinline]] Block* PooledBlocks::FindInChunks(std::size_t size) noexcept {
  return FindIn<false>(size);
}

[[gnu::noinline]] Block* PooledBlocks::FindInRanges(std::size_t size) noexcept {
  return FindIn<true>(size);
}

[[gnu::noinline]] Block* PooledBlocks::FindSlowly(std::size_t size) noexcept {
  if (cache_.is_sweep_due()) Join(cache_.TakeStale());
  const Pool pool = policy_.PoolOf(size);
  Block* block = FindAndCarve(pool, size);
  // If the record for the rest is missing, more free blocks do not help.
  if (block == nullptr && !cache_.empty() && records_.Has(1)) {
    JoinAll();
    block = FindAndCarve(pool, size);
  }
  if (block != nullptr) cache_.NoteSearch(size);
  return block;
}

void PooledBlocks::Join(Block* cached) noexcept {
  while (cached != nullptr) {
    Block* const next = cached->free_next;
    // The current epoch is right: JoinAll runs before an epoch ends.
    Insert(cached, epochs_.current());
    cached = next;
  }
  records_.Shed();
}

// With kInRanges, neighbours may be open blocks or holes.
template <bool kInRanges>
[[gnu::always_inline]] inline void PooledBlocks::Place(
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

void PooledBlocks::InsertFree(Block* block, FreeEpochs::Epoch epoch) noexcept {
  Place</*kInRanges=*/true>(block, epoch);
}

void PooledBlocks::Insert(Block* block, FreeEpochs::Epoch epoch) noexcept {
  ++gives_;
  if (has_ranges_) return InsertFree(block, epoch);
  Place</*kInRanges=*/false>(block, epoch);
}

void PooledBlocks::AddFree(Block* block) noexcept {
  if (!OpenBlocks::IsOpen(*block)) return index(*block).Insert(block);
  open_[block->pool].Insert(block);
  block->pool = static_cast<std::uint8_t>(block->pool + kPools);
}

void PooledBlocks::RemoveFree(Block* block) noexcept {
  if (!IsInOpenBlocks(*block)) return index(*block).Remove(block);
  block->pool = static_cast<std::uint8_t>(block->pool - kPools);
  open_[block->pool].Remove(block);
}

Chunk* PooledBlocks::Detach(Chunk* chunk) noexcept {
  if (chunk == nullptr) return nullptr;
  IdleListOf(chunk).Remove(chunk);
  index(*chunk->first).Remove(chunk->first);
  blocks_.RemoveChunk(chunk, records_);
  LimitCache();
  chunk->next = nullptr;
  return chunk;
}

Chunk* PooledBlocks::DetachLargest(std::size_t bytes,
                                   std::size_t least) noexcept {
  Chunk* chunks = nullptr;
  idle_.SortBySize();
  for (std::size_t taken = 0; taken < bytes;) {
    Chunk* chunk = idle_.first();
    if (chunk == nullptr || chunk->first->size < least) break;
    taken += chunk->first->size;
    chunk = Detach(chunk);
    chunk->next = std::exchange(chunks, chunk);
  }
  return chunks;
}

std::size_t PooledBlocks::LargestFree() const noexcept {
  std::size_t largest = 0;
  for (const FreeIndex& blocks : index_) {
    largest = std::max(largest, blocks.LargestBytes());
  }
  for (const OpenBlocks& blocks : open_) {
    blocks.ForEach(
        [&](const Block& block) { largest = std::max(largest, block.size); });
  }
  return largest;
}

bool PooledBlocks::AreConsistent() const {
  FreeIndex::Totals free;
  for (const FreeIndex& blocks : index_) {
    const FreeIndex::Totals totals = blocks.Count();
    free.blocks += totals.blocks;
    free.bytes += totals.bytes;
    if (!blocks.IsConsistent()) return false;
  }
  for (const OpenBlocks& blocks : open_) {
    blocks.ForEach([&](const Block& block) {
      ++free.blocks;
      free.bytes += block.size;
    });
  }
  return free.blocks == free_blocks() &&
         free.bytes + taken_bytes_ == blocks_.chunk_bytes() &&
         cache_.IsConsistent() && idle_.IsConsistent() &&
         idle_loans_.IsConsistent() && blocks_.IsConsistent();
}

}  // namespace strata
