#include "strata/strategy/blocks/block_list.h"

#include "strata/allocation/block_flags.h"

namespace strata {

void StartChunk(Chunk* chunk, Block* block) {
  const Block* memory = chunk->memory->block();
  block->data = memory->data;
  block->size = memory->size;
  block->set_place(memory->place());
  block->pool = 0;
  block->chunk = chunk;
  chunk->is_loan = memory->chunk != nullptr;
  block->previous = nullptr;
  block->next = nullptr;
  chunk->first = block;
}

BlockState StateOf(const Block& block) {
  if (block.is_free) return BlockState::kFree;
  if (HasFlag(block, kBlockLent)) return BlockState::kLent;
  return HasFlag(block, kBlockLive) ? BlockState::kLive : BlockState::kDeferred;
}

void DescribeBlocks(const Chunk& chunk, std::vector<BlockInfo>& blocks) {
  for (const Block* block = chunk.first; block != nullptr;
       block = block->next) {
    if (!BlockList::IsUsable(*block)) continue;
    blocks.push_back(
        {block->data, block->size, chunk.memory->data(), StateOf(*block)});
  }
}

void BlockList::AddChunk(Chunk* chunk, Block* block) {
  StartChunk(chunk, block);
  chunk->previous = nullptr;
  chunk->next = first_;
  if (first_ != nullptr) first_->previous = chunk;
  first_ = chunk;
  ++chunk_count_;
  chunk_bytes_ += block->size;
}

void BlockList::RemoveChunk(Chunk* chunk, RecordSlab::List& records) {
  if (chunk->previous != nullptr) {
    chunk->previous->next = chunk->next;
  } else {
    first_ = chunk->next;
  }
  if (chunk->next != nullptr) chunk->next->previous = chunk->previous;
  --chunk_count_;
  chunk_bytes_ -= chunk->first->size;
  *chunk->first = Block();
  records.Push(chunk->first);
  chunk->first = nullptr;
}

void BlockList::AddRange(Chunk* range, Block* hole) {
  AddChunk(range, hole);
  chunk_bytes_ -= hole->size;
  SetUnusable(hole, kHolePool);
}

void BlockList::RemoveRange(Chunk* range, RecordSlab::List& records) {
  SetUsable(range->first, 0);
  chunk_bytes_ += range->first->size;
  RemoveChunk(range, records);
}

void BlockList::SetUnusable(Block* block, std::uint8_t pool) {
  if (IsUsable(*block)) ++unusable_count_;
  block->pool = pool;
  block->is_free = false;
  block->flags = 0;
}

void BlockList::SetUsable(Block* block, std::uint8_t pool) {
  if (!IsUsable(*block)) --unusable_count_;
  block->pool = pool;
}

Block* BlockList::SplitUnusable(Block* block, std::size_t low_bytes,
                                Block* record) {
  ++unusable_count_;
  record->is_free = false;
  record->flags = 0;
  record->offset_units = block->offset_units;
  return Split(block, low_bytes, record);
}

void BlockList::CoalesceUnusable(Block* low, Block* high,
                                 RecordSlab::List& records) {
  --unusable_count_;
  Coalesce(low, high, records);
}

void BlockList::Describe(std::vector<BlockInfo>& blocks) const {
  for (const Chunk* chunk = first_; chunk != nullptr; chunk = chunk->next) {
    DescribeBlocks(*chunk, blocks);
  }
}

bool BlockList::IsConsistent() const {
  std::size_t chunks = 0;
  std::size_t count = 0;
  std::size_t bytes = 0;
  std::size_t unusable = 0;
  const Chunk* previous_chunk = nullptr;
  for (const Chunk* chunk = first_; chunk != nullptr; chunk = chunk->next) {
    if (chunk->previous != previous_chunk) return false;
    const auto* at = static_cast<const std::byte*>(chunk->memory->data());
    const std::byte* end = at + chunk->memory->size();
    const Block* previous = nullptr;
    for (const Block* block = chunk->first; block != nullptr;
         block = block->next) {
      if (block->previous != previous || block->chunk != chunk) return false;
      if (block->data != at || block->size == 0) return false;
      if (!chunk->is_range && block->pool != chunk->first->pool) return false;
      if (IsFree(block) && IsFree(previous)) return false;
      at += block->size;
      ++count;
      if (IsUsable(*block)) {
        bytes += block->size;
      } else {
        ++unusable;
        if (IsHole(block) && IsHole(previous)) return false;
      }
      previous = block;
    }
    if (at != end) return false;
    ++chunks;
    previous_chunk = chunk;
  }
  return chunks == chunk_count_ && bytes == chunk_bytes_ &&
         count == block_count() && unusable == unusable_count_;
}

}  // namespace strata
