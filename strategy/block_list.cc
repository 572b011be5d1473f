#include "strata/strategy/block_list.h"

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

void BlockList::RemoveChunk(Chunk* chunk, RecordList& records) {
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

void BlockList::Describe(std::vector<BlockInfo>& blocks) const {
  for (const Chunk* chunk = first_; chunk != nullptr; chunk = chunk->next) {
    DescribeBlocks(*chunk, blocks);
  }
}

bool BlockList::IsConsistent() const {
  std::size_t chunks = 0;
  std::size_t count = 0;
  std::size_t bytes = 0;
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
      if (block->pool != chunk->first->pool) return false;
      if (IsFree(block) && IsFree(previous)) return false;
      at += block->size;
      bytes += block->size;
      ++count;
      previous = block;
    }
    if (at != end) return false;
    ++chunks;
    previous_chunk = chunk;
  }
  return chunks == chunk_count_ && bytes == chunk_bytes_ &&
         count == block_count();
}

}  // namespace strata
