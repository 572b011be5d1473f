#include "strata/allocation/front_cache.h"

#include <utility>

namespace strata {

FrontCache::FrontCache(std::size_t max_block_bytes, std::size_t granule_bytes,
                       std::uint8_t searches)
    : max_bytes_(max_block_bytes / granule_bytes * granule_bytes),
      granule_bytes_(granule_bytes),
      enough_touches_(searches) {}

FrontCache& FrontCache::None() {
  static FrontCache none(0, 1);
  return none;
}

void FrontCache::Touch(std::size_t bytes) noexcept {
  ++searches_;
  Entry* entry = nullptr;
  for (Entry& candidate : SetOf(bytes)) {
    if (candidate.bytes == bytes) {
      if (candidate.touches < enough_touches_) ++candidate.touches;
      candidate.was_used = true;
      return;
    }
    // Sizes that have blocks stay until a sweep finds them unused.
    if (candidate.first != nullptr) continue;
    if (entry == nullptr || candidate.touches < entry->touches) {
      entry = &candidate;
    }
  }
  if (entry == nullptr) return;
  // One that has earned its place loses it step by step.
  if (entry->touches > 1) {
    --entry->touches;
    return;
  }
  *entry = Entry();
  entry->bytes = bytes;
  entry->touches = 1;
  entry->was_used = true;
}

Block* FrontCache::TakeIf(bool unused) noexcept {
  Block* taken = nullptr;
  for (Set& set : sets_) {
    for (Entry& entry : set.entries) {
      if (unused && entry.was_used) continue;
      while (entry.first != nullptr) {
        Block* const block = entry.first;
        entry.first = block->free_next;
        block->free_next = std::exchange(taken, block);
        bytes_ -= block->size;
      }
    }
  }
  return taken;
}

Block* FrontCache::TakeStale() noexcept {
  searches_ = 0;
  Block* const stale = TakeIf(/*unused=*/true);
  for (Set& set : sets_) {
    for (Entry& entry : set.entries) {
      if (!std::exchange(entry.was_used, false)) entry = Entry();
    }
  }
  return stale;
}

bool FrontCache::IsConsistent() const {
  std::size_t bytes = 0;
  for (const Set& set : sets_) {
    for (const Entry& entry : set.entries) {
      for (const Block* block = entry.first; block != nullptr;
           block = block->free_next) {
        if (block->size != entry.bytes || block->flags != 0) return false;
        bytes += block->size;
      }
    }
  }
  return bytes == bytes_;
}

}  // namespace strata
