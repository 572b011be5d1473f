#include "strata/strategy/bfc/arena/regions.h"

#include "strata/strategy/bfc/arena/note.h"
#include "strata/strategy/blocks/block_list.h"

namespace strata {

void BfcRegions::Add(BfcRegion* region, Block* block) {
  StartChunk(region, block);
  StartNote(block);
  region->size = block->size;
  region->live_blocks = 0;

  Chunk* before = nullptr;
  Chunk* after = first_;
  while (after != nullptr &&
         static_cast<BfcRegion*>(after)->begin() < region->begin()) {
    before = after;
    after = after->next;
  }
  region->previous = before;
  region->next = after;
  (before != nullptr ? before->next : first_) = region;
  if (after != nullptr) after->previous = region;
  ++count_;
  bytes_ += region->size;
}

void BfcRegions::Remove(BfcRegion* region) {
  (region->previous != nullptr ? region->previous->next : first_) =
      region->next;
  if (region->next != nullptr) region->next->previous = region->previous;
  region->previous = nullptr;
  region->next = nullptr;
  --count_;
  bytes_ -= region->size;
}

BfcRegion* BfcRegions::EndingAt(const std::byte* address) const {
  BfcRegion* region = first();
  while (region != nullptr && region->end() != address) {
    region = region->next_region();
  }
  return region;
}

void BfcRegions::Append(BfcRegion* into, BfcRegion* from) {
  Block* piece = into->memory->block();
  while (piece->next != nullptr) piece = piece->next;
  piece->next = from->memory->block();
  Block* last = into->first;
  while (last->next != nullptr) last = last->next;
  last->next = from->first;
  from->first->previous = last;
  for (Block* block = from->first; block != nullptr; block = block->next) {
    block->chunk = into;
  }
  into->size += from->size;
  into->live_blocks += from->live_blocks;
  bytes_ += from->size;
}

Block* BfcRegions::Split(Block* block, std::size_t low_bytes, Block* record) {
  SplitBlock(block, low_bytes, record);
  StartNote(record);
  return record;
}

bool BfcRegions::IsConsistent() const {
  std::size_t count = 0;
  std::size_t bytes = 0;
  const BfcRegion* before = nullptr;
  for (const BfcRegion* region = first(); region != nullptr;
       region = region->next_region()) {
    if (region->previous != before) return false;
    if (before != nullptr && before->end() > region->begin()) return false;
    const std::byte* at = region->begin();
    std::size_t live = 0;
    const Block* previous = nullptr;
    for (const Block* block = region->first; block != nullptr;
         block = block->next) {
      if (block->previous != previous || block->chunk != region) return false;
      if (block->data != at || block->size == 0 || block->size % 256 != 0) {
        return false;
      }
      const bool is_live = NoteOf(block).allocation_id != -1;
      if (is_live && block->is_free) return false;
      at += block->size;
      live += is_live ? 1 : 0;
      previous = block;
    }
    if (at != region->end() || live != region->live_blocks) return false;
    bytes += region->size;
    ++count;
    before = region;
  }
  return count == count_ && bytes == bytes_;
}

}  // namespace strata
