#include "strata/allocation/hit/front_cache.h"

#include <utility>

namespace strata {

void FrontCache::Configure(std::size_t max_block_bytes,
                           std::size_t granule_bytes,
                           std::uint8_t searches) noexcept {
  max_bytes_ = max_block_bytes / granule_bytes * granule_bytes;
  granule_mask_ = granule_bytes - 1;
  size_mask_ = ~granule_mask_;
  enough_touches_ = searches;
}

void FrontCache::Touch(std::size_t bytes) noexcept {
  ++searches_;
  Entry* entry = nullptr;
  for (Entry& candidate : SetOf(bytes)) {
    if ((candidate.key & ~kCandidate) == bytes) {
      if (candidate.touches < enough_touches_) ++candidate.touches;
      candidate.was_searched = true;
      Admit(candidate, bytes);
      return;
    }
    // Sizes with cached blocks stay until a sweep finds them unused.
    if (candidate.first != nullptr) continue;
    if (entry == nullptr || candidate.touches < entry->touches) {
      entry = &candidate;
    }
  }
  if (entry == nullptr) return;
  // An entry with many touches loses one of them instead of its place.
  if (entry->touches > 1) {
    --entry->touches;
    Admit(*entry, entry->key);
    return;
  }
  swept_hits_ += entry->hits;
  *entry = Entry();
  entry->touches = 1;
  entry->was_searched = true;
  Admit(*entry, bytes);
}

Block* FrontCache::TakeOut(std::size_t bytes) noexcept {
  for (Entry& entry : SetOf(bytes)) {
    if (entry.key != bytes || entry.first == nullptr) continue;
    Block* const block = entry.first;
    entry.first = std::exchange(block->free_next, nullptr);
    room_bytes_ += Signed(bytes);
    return block;
  }
  return nullptr;
}

Block* FrontCache::TakeIf(bool unused) noexcept {
  Block* taken = nullptr;
  for (Set& set : sets_) {
    for (Entry& entry : set.entries) {
      if (unused && (entry.was_searched || entry.hits != 0)) continue;
      if (entry.first == nullptr) continue;
      while (entry.first != nullptr) {
        Block* const block = entry.first;
        entry.first = block->free_next;
        block->free_next = std::exchange(taken, block);
        room_bytes_ += Signed(block->size);
      }
      if (empty()) return taken;
    }
  }
  return taken;
}

Block* FrontCache::TakeStale() noexcept {
  searches_ = 0;
  Block* const stale = TakeIf(/*unused=*/true);
  for (Set& set : sets_) {
    for (Entry& entry : set.entries) {
      swept_hits_ += entry.hits;
      if (!entry.was_searched && entry.hits == 0) entry = Entry();
      entry.was_searched = false;
      entry.hits = 0;
    }
  }
  return stale;
}

std::uint64_t FrontCache::hits() const {
  std::uint64_t hits = swept_hits_;
  for (const Set& set : sets_) {
    for (const Entry& entry : set.entries) hits += entry.hits;
  }
  return hits;
}

bool FrontCache::IsConsistent() const {
  std::size_t bytes = 0;
  for (const Set& set : sets_) {
    for (const Entry& entry : set.entries) {
      for (const Block* block = entry.first; block != nullptr;
           block = block->free_next) {
        if (block->size != entry.key || block->flags != 0) return false;
        bytes += block->size;
      }
    }
  }
  return bytes == this->bytes();
}

}  // namespace strata
