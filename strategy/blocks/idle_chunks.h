#ifndef STRATA_STRATEGY_BLOCKS_IDLE_CHUNKS_H_
#define STRATA_STRATEGY_BLOCKS_IDLE_CHUNKS_H_

#include <cstddef>

#include "strata/allocation/allocation.h"
#include "strata/allocation/chunks/chunk_holder.h"
#include "strata/base/size.h"

namespace strata {

// The chunks of a strategy without a live block. Each is one free block. Linked
// through Chunk::idle_previous and idle_next.
//
// Units: bytes.
// Threads: not thread-safe. The strategy's lock guards it.
// Cost: O(1) to add or remove one; O(idle chunks) to search, no heap call.
class IdleChunks {
 public:
  IdleChunks() = default;
  IdleChunks(const IdleChunks&) = delete;
  IdleChunks& operator=(const IdleChunks&) = delete;

  void Add(Chunk* chunk);
  void Remove(Chunk* chunk);

  // The chunk added last, or the largest one after SortBySize(); null if there
  // is none.
  Chunk* first() const { return first_; }
  // Sorts by size, the largest first; stable. O(n log n).
  void SortBySize();
  // The smallest chunk of at least `bytes`; null if there is none.
  Chunk* Smallest(std::size_t bytes) const;
  // Sets best_fit and largest of `idle`, unless `fit_bytes` is 0.
  void FillInSizes(std::size_t fit_bytes, ChunkHolder::IdleInfo& idle) const;

  std::size_t bytes() const { return bytes_; }
  // Sum of the chunks, each in whole steps of kSystemStepBytes.
  std::size_t system_bytes() const { return system_bytes_; }

  // Whether each chunk is one free block, and the sums are right. For tests.
  bool IsConsistent() const;

 private:
  // The block's size is the chunk's. The caller has just read the block.
  static std::size_t Bytes(const Chunk* chunk) { return chunk->first->size; }
  // Merges two sorted lists, linked by idle_next.
  static Chunk* Merge(Chunk* earlier, Chunk* later);
  static std::size_t SystemBytes(const Chunk* chunk) {
    return AlignUp(Bytes(chunk), kSystemStepBytes);
  }

  Chunk* first_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t system_bytes_ = 0;
};

// Inline, because they are part of the hits that use up a chunk.

inline void IdleChunks::Add(Chunk* chunk) {
  chunk->idle_previous = nullptr;
  chunk->idle_next = first_;
  if (first_ != nullptr) first_->idle_previous = chunk;
  first_ = chunk;
  bytes_ += Bytes(chunk);
  system_bytes_ += SystemBytes(chunk);
}

inline void IdleChunks::Remove(Chunk* chunk) {
  (chunk->idle_previous != nullptr ? chunk->idle_previous->idle_next : first_) =
      chunk->idle_next;
  if (chunk->idle_next != nullptr) {
    chunk->idle_next->idle_previous = chunk->idle_previous;
  }
  bytes_ -= Bytes(chunk);
  system_bytes_ -= SystemBytes(chunk);
}

}  // namespace strata

#endif  // STRATA_STRATEGY_BLOCKS_IDLE_CHUNKS_H_
