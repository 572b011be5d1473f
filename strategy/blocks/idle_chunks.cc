#include "strata/strategy/blocks/idle_chunks.h"

#include <algorithm>
#include <array>
#include <utility>

#include "strata/strategy/blocks/block_list.h"

namespace strata {

Chunk* IdleChunks::Smallest(std::size_t bytes) const {
  Chunk* best = nullptr;
  for (Chunk* chunk = first_; chunk != nullptr; chunk = chunk->idle_next) {
    const std::size_t size = Bytes(chunk);
    if (size >= bytes && (best == nullptr || size < Bytes(best))) {
      best = chunk;
    }
  }
  return best;
}

void IdleChunks::FillInSizes(std::size_t fit_bytes,
                             ChunkHolder::IdleInfo& idle) const {
  if (fit_bytes == 0) return;
  for (const Chunk* chunk = first_; chunk != nullptr;
       chunk = chunk->idle_next) {
    idle.largest = std::max(idle.largest, Bytes(chunk));
  }
  const Chunk* fit = Smallest(fit_bytes);
  if (fit != nullptr) idle.best_fit = Bytes(fit);
}

Chunk* IdleChunks::Merge(Chunk* earlier, Chunk* later) {
  Chunk* merged = nullptr;
  Chunk** end = &merged;
  while (earlier != nullptr && later != nullptr) {
    Chunk*& next = Bytes(later) > Bytes(earlier) ? later : earlier;
    *end = next;
    end = &next->idle_next;
    next = next->idle_next;
  }
  *end = earlier != nullptr ? earlier : later;
  return merged;
}

void IdleChunks::SortBySize() {
  // Sorted lists of 1, 2, 4 … chunks; the longer a list, the earlier its chunks
  // came.
  std::array<Chunk*, 64> lists{};
  std::size_t used = 0;
  for (Chunk* chunk = first_; chunk != nullptr;) {
    Chunk* list = std::exchange(chunk, chunk->idle_next);
    list->idle_next = nullptr;
    std::size_t i = 0;
    for (; lists[i] != nullptr; ++i) {
      list = Merge(std::exchange(lists[i], nullptr), list);
    }
    lists[i] = list;
    used = std::max(used, i + 1);
  }
  first_ = nullptr;
  for (std::size_t i = 0; i < used; ++i) first_ = Merge(lists[i], first_);
  Chunk* previous = nullptr;
  for (Chunk* chunk = first_; chunk != nullptr; chunk = chunk->idle_next) {
    chunk->idle_previous = std::exchange(previous, chunk);
  }
}

bool IdleChunks::IsConsistent() const {
  std::size_t bytes = 0;
  std::size_t system_bytes = 0;
  const Chunk* previous = nullptr;
  for (const Chunk* chunk = first_; chunk != nullptr;
       chunk = chunk->idle_next) {
    if (chunk->idle_previous != previous ||
        !BlockList::IsWholeChunk(chunk->first) ||
        !BlockList::IsFree(chunk->first) ||
        Bytes(chunk) != chunk->memory->size()) {
      return false;
    }
    previous = chunk;
    bytes += Bytes(chunk);
    system_bytes += SystemBytes(chunk);
  }
  return bytes == bytes_ && system_bytes == system_bytes_;
}

}  // namespace strata
