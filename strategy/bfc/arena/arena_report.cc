// Reports of BfcArena.

#include <algorithm>

#include "strata/strategy/bfc/arena/arena.h"
#include "strata/strategy/bfc/arena/note.h"
#include "strata/strategy/blocks/block_list.h"

namespace strata {
namespace {

// Whether blocks of `low` may lie directly below blocks of `high`, another end.
bool IsInOrder(BfcEnd low, BfcEnd high) {
  return low == BfcEnd::kLower || high == BfcEnd::kUpper;
}

}  // namespace

std::size_t BfcArena::LargestFreeBytes() const {
  return std::max({lower_.LargestBytes(),
                   upper_ != nullptr ? upper_->LargestBytes() : 0,
                   gap_ != nullptr ? gap_->size : 0});
}

BfcSnapshot::Numbers BfcArena::numbers() const {
  BfcSnapshot::Numbers numbers = numbers_;
  numbers.num_allocs = stats_.allocations - uncounted_;
  // No memory is reserved without a chunk.
  numbers.peak_allocated_bytes = numbers.peak_bytes_in_use;
  numbers.pool_bytes = regions_.bytes();
  numbers.largest_free_block_bytes = LargestFreeBytes();  // R48
  return numbers;
}

Stats BfcArena::stats() const {
  Stats stats = stats_;
  stats.in_use_bytes = numbers_.bytes_in_use;
  stats.peak_in_use_bytes = numbers_.peak_bytes_in_use;
  stats.reserved_bytes = regions_.bytes();
  stats.peak_reserved_bytes = numbers_.peak_pool_bytes;
  stats.chunks = regions_.count();
  stats.free_blocks = block_count_;
  stats.largest_free_bytes = LargestFreeBytes();
  for (const BfcRegion* region = regions_.first(); region != nullptr;
       region = region->next_region()) {
    stats.free_blocks -= region->live_blocks;
    if (region->live_blocks == 0) stats.idle_bytes += region->size;
  }
  return stats;
}

void BfcArena::ResetPeak() {
  numbers_.peak_bytes_in_use = numbers_.bytes_in_use;
  numbers_.peak_pool_bytes = regions_.bytes();
}

void BfcArena::ClearNumbers() {
  uncounted_ = stats_.allocations;
  numbers_.largest_alloc_size = 0;
  numbers_.peak_bytes_in_use = numbers_.bytes_in_use;
}

void BfcArena::Describe(std::vector<BlockInfo>& blocks) const {
  for (const BfcRegion* region = regions_.first(); region != nullptr;
       region = region->next_region()) {
    DescribeBlocks(*region, blocks);
  }
}

void BfcArena::Describe(BfcSnapshot& snapshot,
                        std::vector<const BfcAnnotation*>& annotations) const {
  snapshot.numbers = numbers();
  snapshot.action_count = actions_;
  snapshot.has_timing_counter = rules_.counter != nullptr;
  for (const BfcRegion* region = regions_.first(); region != nullptr;
       region = region->next_region()) {
    BfcSnapshot::RegionState region_state;
    region_state.address = reinterpret_cast<std::uintptr_t>(region->begin());
    region_state.size = region->size;
    region_state.first_chunk = snapshot.chunks.size();
    for (const Block* block = region->first; block != nullptr;
         block = block->next) {
      const BfcNote& note = NoteOf(block);
      BfcSnapshot::ChunkState chunk;
      chunk.address = reinterpret_cast<std::uintptr_t>(block->data);
      chunk.size = block->size;
      chunk.requested_bytes = note.requested_bytes;
      chunk.in_use = !block->is_free;
      chunk.deferred = StateOf(*block) == BlockState::kDeferred;
      chunk.bin = block->is_free ? BfcBinOf(block->size) : -1;
      chunk.allocation_id = note.allocation_id;
      chunk.freed_at_count = note.freed_at;
      chunk.action_count = note.action;
      snapshot.chunks.push_back(chunk);
      BfcAnnotation::Hold(note.annotation);
      annotations.push_back(note.annotation);
    }
    region_state.chunk_count =
        snapshot.chunks.size() - region_state.first_chunk;
    snapshot.regions.push_back(region_state);
  }
}

void BfcArena::Describe(std::vector<BfcSnapshot::SizeAt>& history) const {
  if (history_.empty()) return;
  for (std::size_t i = 1; i <= kHistory; ++i) {
    const BfcSnapshot::SizeAt& entry = history_[(actions_ + i) % kHistory];
    if (entry.action_count != 0) history.push_back(entry);
  }
}

bool BfcArena::IsConsistent() const {
  std::size_t blocks = 0;
  std::size_t waiting = 0;
  std::size_t in_use = 0;
  std::size_t free_bytes = 0;
  std::size_t kept_bytes = 0;  // in the front cache
  std::uint64_t requested = 0;
  for (const BfcRegion* region = regions_.first(); region != nullptr;
       region = region->next_region()) {
    for (const Block* block = region->first; block != nullptr;
         block = block->next) {
      const BfcNote& note = NoteOf(block);
      const Block* next = block->next;
      ++blocks;
      waiting += note.freed_at != 0 ? 1 : 0;
      if (block->is_free) {
        free_bytes += block->size;
      } else {
        (note.allocation_id != -1 ? in_use : kept_bytes) += block->size;
      }
      requested += note.requested_bytes;
      if (!block->is_free && note.freed_at != 0) return false;
      // The parts of the two ends are in order, and no safe hole is next to the
      // gap.
      if (next != nullptr && note.end != NoteOf(next).end &&
          !IsInOrder(note.end, NoteOf(next).end)) {
        return false;
      }
      if (block->is_free && note.freed_at == 0 && IsInnermost(block) &&
          rules_.has_two_ends) {
        return false;
      }
      if (note.end == BfcEnd::kGap && (block != gap_ || note.freed_at != 0)) {
        return false;
      }
      // R5: two neighbours are free only if one of them still waits.
      if (block->is_free && next != nullptr && next->is_free &&
          note.freed_at == 0 && NoteOf(next).freed_at == 0) {
        return false;
      }
    }
  }
  return blocks == block_count_ && waiting == waiting_.count() &&
         in_use == numbers_.bytes_in_use && kept_bytes == cache_.bytes() &&
         in_use + kept_bytes + free_bytes == regions_.bytes() &&
         requested == stats_.requested_bytes && regions_.IsConsistent() &&
         lower_.IsConsistent() &&
         (upper_ == nullptr || upper_->IsConsistent()) &&
         waiting_.IsConsistent() && cache_.IsConsistent();
}

}  // namespace strata
