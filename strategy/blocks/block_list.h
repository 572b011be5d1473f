#ifndef STRATA_STRATEGY_BLOCKS_BLOCK_LIST_H_
#define STRATA_STRATEGY_BLOCKS_BLOCK_LIST_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "strata/allocation/allocation.h"
#include "strata/allocation/record_slab.h"
#include "strata/allocation/visitor.h"

namespace strata {

// Blocks linked through Block::free_previous and free_next, in no order.
//
// Threads: not thread-safe. The strategy's lock guards it.
// Cost: O(1).
class BlockChain {
 public:
  BlockChain() = default;
  BlockChain(const BlockChain&) = delete;
  BlockChain& operator=(const BlockChain&) = delete;

  void Insert(Block* block);
  // `block` is in this chain.
  void Remove(Block* block);
  Block* first() const { return first_; }

 private:
  Block* first_ = nullptr;
};

inline void BlockChain::Insert(Block* block) {
  block->free_previous = nullptr;
  block->free_next = first_;
  if (first_ != nullptr) first_->free_previous = block;
  first_ = block;
}

inline void BlockChain::Remove(Block* block) {
  Block* const next = block->free_next;
  Block* const previous = block->free_previous;
  (previous != nullptr ? previous->free_next : first_) = next;
  if (next != nullptr) next->free_previous = previous;
}

// Makes `block` all of the memory of `chunk`, in pool 0. Sets only size,
// address and neighbours of its record.
void StartChunk(Chunk* chunk, Block* block);
// Splits `block`: it becomes the low `low_bytes`, `record` becomes the rest.
// Returns `record`.
Block* SplitBlock(Block* block, std::size_t low_bytes, Block* record);
// Coalesces `low` with `high`, the next block, which has flags 0. Discards the
// record of `high` into `records`.
void JoinBlocks(Block* low, Block* high, RecordSlab::List& records);
// Puts `record`, which has flags 0, into `records`. The record still describes
// its memory, so that the report of a second free can name it.
void Discard(Block* record, RecordSlab::List& records);
// The state of a block of a strategy for a memory map. Hold the strategy's
// lock.
BlockState StateOf(const Block& block);
// Appends every block of `chunk` to `blocks`.
void DescribeBlocks(const Chunk& chunk, std::vector<BlockInfo>& blocks);

// The blocks of a strategy's chunks in address order. Blocks tile each chunk
// without gap or overlap.
//
// Model: chunks are in a list. Blocks of a chunk are linked by Block::previous
//   and next. Free blocks have is_free set; the strategy decides which blocks
//   are free and indexes them. The number of blocks follows from the counts of
//   chunks, splits and coalesces.
// Threads: not thread-safe. The strategy's lock guards it.
// Cost: O(1) unless stated otherwise.
class BlockList {
 public:
  BlockList() = default;
  BlockList(const BlockList&) = delete;
  BlockList& operator=(const BlockList&) = delete;

  // Adds `chunk`; its memory becomes the one block `block`, not free.
  void AddChunk(Chunk* chunk, Block* block);
  // Removes an idle chunk; the record of its only block goes to `records`.
  void RemoveChunk(Chunk* chunk, RecordSlab::List& records);

  // Splits `block`: it becomes the low `low_bytes`, `record` becomes the rest.
  // Returns `record`. Neither is in an index.
  Block* Split(Block* block, std::size_t low_bytes, Block* record);
  // Splits `block`: `record` becomes the low `low_bytes`. Returns `record`.
  Block* SplitLow(Block* block, std::size_t low_bytes, Block* record);
  // Coalesce, but the record of `high` stays and the record of `low` goes to
  // `records`.
  void CoalesceLow(Block* low, Block* high, RecordSlab::List& records);
  // Coalesces `low` with `high`, the next block. Neither is live nor in an
  // index. The record of `high` goes to `records`.
  void Coalesce(Block* low, Block* high, RecordSlab::List& records);

  // Values of Block::pool for blocks of an address range that serve no request.
  static constexpr std::uint8_t kHolePool = 0xff;     // nothing is mapped
  static constexpr std::uint8_t kRetiredPool = 0xfe;  // mapped for past work
  static constexpr std::uint8_t kPendingPool = 0xfd;  // a device call runs

  // Adds `range`, of which nothing is mapped; `hole` becomes all of it.
  void AddRange(Chunk* range, Block* hole);
  // Removes `range`, of which nothing is mapped any more.
  void RemoveRange(Chunk* range, RecordSlab::List& records);
  // Changes the count of bytes that are mapped in ranges.
  void AddMapped(std::size_t bytes) { chunk_bytes_ += bytes; }
  void SubtractMapped(std::size_t bytes) { chunk_bytes_ -= bytes; }
  // Moves `block`, not free and in no index, to one of the pools above, or back
  // to a pool that serves requests.
  void SetUnusable(Block* block, std::uint8_t pool);
  void SetUsable(Block* block, std::uint8_t pool);
  // Split and Coalesce for blocks in one of the pools above.
  Block* SplitUnusable(Block* block, std::size_t low_bytes, Block* record);
  void CoalesceUnusable(Block* low, Block* high, RecordSlab::List& records);
  std::size_t unusable_count() const { return unusable_count_; }

  static bool IsFree(const Block* block) {
    return block != nullptr && block->is_free;
  }
  static bool IsHole(const Block* block) {
    return block != nullptr && block->pool == kHolePool;
  }
  static bool IsUsable(const Block& block) { return block.pool < kPendingPool; }
  // Whether `block` is all of its chunk.
  static bool IsWholeChunk(const Block* block) {
    // One branch for both: each is null about half of the time.
    return (reinterpret_cast<std::uintptr_t>(block->previous) |
            reinterpret_cast<std::uintptr_t>(block->next)) == 0;
  }

  Chunk* first_chunk() const { return first_; }
  std::size_t chunk_count() const { return chunk_count_; }
  std::size_t chunk_bytes() const { return chunk_bytes_; }
  std::size_t block_count() const {
    return chunk_count_ + splits_ - coalesces_;
  }
  std::uint64_t splits() const { return splits_; }
  std::uint64_t coalesces() const { return coalesces_; }

  // Appends every block to `blocks`. O(blocks).
  void Describe(std::vector<BlockInfo>& blocks) const;
  // Whether the blocks tile the chunks and no two neighbours are free. For
  // tests; O(blocks).
  bool IsConsistent() const;

 private:
  // Links `block` after `previous`, or as the first of its chunk.
  static void LinkAfter(Block* previous, Block* block);

  Chunk* first_ = nullptr;
  std::size_t chunk_count_ = 0;
  std::size_t chunk_bytes_ = 0;
  std::uint64_t splits_ = 0;
  std::uint64_t coalesces_ = 0;
  std::size_t unusable_count_ = 0;  // Blocks in the pools of ranges.
};

// Sets block->previous if `block` is not null. Without a branch, because the
// branch would often be mispredicted.
inline void SetPrevious(Block* block, Block* previous) {
  Block* nowhere;
  *(block != nullptr ? &block->previous : &nowhere) = previous;
}

inline Block* SplitBlock(Block* block, std::size_t low_bytes, Block* record) {
  record->data = block->data + low_bytes;
  record->size = block->size - low_bytes;
  record->set_place(block->place());
  record->pool = block->pool;
  record->chunk = block->chunk;
  record->previous = block;
  record->next = block->next;
  SetPrevious(block->next, record);
  block->next = record;
  block->size = low_bytes;
  return record;
}

inline void Discard(Block* record, RecordSlab::List& records) {
  record->is_free = false;
  record->chunk = nullptr;
  records.Push(record);
}

inline void JoinBlocks(Block* low, Block* high, RecordSlab::List& records) {
  Block* const next = high->next;
  low->size += high->size;
  low->next = next;
  SetPrevious(next, low);
  Discard(high, records);
}

inline Block* BlockList::Split(Block* block, std::size_t low_bytes,
                               Block* record) {
  ++splits_;
  return SplitBlock(block, low_bytes, record);
}

inline void BlockList::LinkAfter(Block* previous, Block* block) {
  (previous != nullptr ? previous->next : block->chunk->first) = block;
}

inline Block* BlockList::SplitLow(Block* block, std::size_t low_bytes,
                                  Block* record) {
  ++splits_;
  record->data = block->data;
  record->size = low_bytes;
  record->set_place(block->place());
  record->chunk = block->chunk;
  record->previous = block->previous;
  record->next = block;
  LinkAfter(block->previous, record);
  block->previous = record;
  block->data += low_bytes;
  block->size -= low_bytes;
  return record;
}

inline void BlockList::CoalesceLow(Block* low, Block* high,
                                   RecordSlab::List& records) {
  ++coalesces_;
  high->data = low->data;
  high->size += low->size;
  high->previous = low->previous;
  LinkAfter(low->previous, high);
  Discard(low, records);
}

inline void BlockList::Coalesce(Block* low, Block* high,
                                RecordSlab::List& records) {
  JoinBlocks(low, high, records);
  ++coalesces_;
}

}  // namespace strata

#endif  // STRATA_STRATEGY_BLOCKS_BLOCK_LIST_H_
