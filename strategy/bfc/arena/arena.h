#ifndef STRATA_STRATEGY_BFC_ARENA_ARENA_H_
#define STRATA_STRATEGY_BFC_ARENA_ARENA_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "strata/allocation/hit/front_cache.h"
#include "strata/allocation/stats.h"
#include "strata/allocation/visitor.h"
#include "strata/strategy/bfc/arena/bfc_index.h"
#include "strata/strategy/bfc/arena/geometry.h"
#include "strata/strategy/bfc/arena/note.h"
#include "strata/strategy/bfc/arena/regions.h"
#include "strata/strategy/bfc/arena/timestamps.h"
#include "strata/strategy/bfc/reports/snapshot.h"
#include "strata/strategy/blocks/front_cache_policy.h"
#include "strata/strategy/blocks/record_stock.h"

namespace strata {

// How requests use the holes of one end (R66).
struct BfcEndPolicy {
  // Which of two holes of equal size is used first.
  OrderedIndex::AddressOrder hole_order =
      OrderedIndex::AddressOrder::kAscending;
  // Splits any rest; otherwise as R10 says.
  bool splits_exactly = false;
};

// Options of BfcArena.
struct BfcArenaRules {
  BfcPlacement placement = BfcPlacement::kCompat;
  bool coalesce_regions = false;  // R24: coalesces adjacent regions.
  // Records the annotation of each allocation, and the bytes in use after each
  // of the last 4096 actions.
  bool keep_annotations = false;
  // Selects freed blocks that stay whole; nullopt: no front cache. Requires
  // kFast, one end and no counter: other modes promise their addresses.
  std::optional<FrontCachePolicy> front_cache;
  // Stamps frees; shared with other users of the counter. Null: frees are safe
  // at once.
  std::shared_ptr<SharedCounter> counter;
  // Each request names the end of the one region that serves it. The region
  // does not grow (R63).
  bool has_two_ends = false;
  BfcEndPolicy lower;  // Also without two ends (R66).
  BfcEndPolicy upper;
};

// One request to BfcArena.
struct BfcAsk {
  std::size_t bytes = 0;    // Requested bytes.
  std::size_t rounded = 0;  // Rounded up to granules.
  std::size_t alignment = kBfcGranuleBytes;
  std::uint64_t freed_before = 0;  // 0: any memory serves.
  const BfcAnnotation* annotation = nullptr;
  BfcEnd end = BfcEnd::kLower;  // kUpper with two ends only.
};

// The part of a BfcAllocator that its lock guards: regions, their blocks, the
// free index, and the counts.
//
// Model: blocks tile each region. A request takes the first free block that is
//   large enough, in the order of BfcIndex. It splits the block if half of it,
//   or more than `most_waste`, would be wasted. A freed block coalesces with
//   its free neighbours; a block freed with a stamp waits until the stamp is
//   safe.
//   With a front cache, freed blocks of sizes that recur stay whole there until
//   a search finds no other block. For their neighbours they are live. Call
//   JoinAll() before reading the free blocks.
//   With two ends, the region is a lower part, a gap and an upper part. A
//   request takes a hole of its own part. If there is none, it takes memory
//   from its side of the gap. Memory freed next to the gap joins the gap. So
//   the addresses of each end depend on its own requests alone, until the gap
//   is used up.
// Threads: not thread-safe. The allocator's lock guards it.
// Cost: the cost of the index; other work is O(1), unless stated otherwise. No
//   heap.
// Source: tf_bfc.md R5 to R13, R21, R24, R29, R30, R38, R39, R47, R63 to R69.
class BfcArena {
 public:
  explicit BfcArena(const BfcArenaRules& rules);
  BfcArena(const BfcArena&) = delete;
  BfcArena& operator=(const BfcArena&) = delete;

  // A block is split if the waste would reach this many bytes (R10).
  void set_most_waste(std::size_t bytes) { most_waste_bytes_ = bytes; }

  // Records for Take and AddRegion.
  static constexpr std::size_t kRecordsPerTake = 2;
  bool IsShortOfRecords() const { return records_.size() < kRecordsPerTake; }
  RecordStock& records() { return records_; }

  // Null if no block fits, or IsShortOfRecords().
  Block* Take(const BfcAsk& ask) noexcept;
  // Frees `block`. Returns the annotation of the allocation.
  const BfcAnnotation* Give(Block* block) noexcept;

  // Flushes the front cache; its blocks coalesce. O(cached blocks).
  void JoinAll() noexcept { Join(cache_.TakeAll()); }

  // R38: coalesces the blocks with a stamp below `frontier`.
  void MergeSafe(std::uint64_t frontier) noexcept;
  bool has_waiting() const { return !waiting_.empty(); }
  std::size_t waiting_count() const { return waiting_.count(); }
  // R39: coalesces blocks regardless of their stamps, oldest first, until one
  // serves `ask`, which has no stamp. True if one does. O(waiting blocks).
  bool MergeUnsafe(const BfcAsk& ask) noexcept;

  // Adds memory from the system. At least one record is in stock. If the region
  // becomes part of another one, returns it as no longer needed.
  BfcRegion* AddRegion(BfcRegion* region) noexcept;
  // Whether no block of the region is in use, or may be (W8). O(blocks) with a
  // counter.
  bool IsIdle(const BfcRegion& region, std::uint64_t frontier) const;
  // Removes an idle region. The front cache is empty.
  void RemoveRegion(BfcRegion* region) noexcept;
  BfcRegion* first_region() const { return regions_.first(); }
  std::size_t region_bytes() const { return regions_.bytes(); }

  std::size_t in_use_bytes() const { return numbers_.bytes_in_use; }
  std::size_t LargestFreeBytes() const;
  BfcSnapshot::Numbers numbers() const;
  Stats stats() const;  // Without the allocator's counts.
  void ResetPeak();
  // R49.
  void ClearNumbers();

  std::size_t block_count() const { return block_count_; }
  std::size_t region_count() const { return regions_.count(); }
  void Describe(std::vector<BlockInfo>& blocks) const;
  // Appends regions and chunks to `snapshot`, and holds the annotations of the
  // chunks. All vectors have room. No heap.
  void Describe(BfcSnapshot& snapshot,
                std::vector<const BfcAnnotation*>& annotations) const;
  // Appends the history to `history`, oldest first. It has room for kHistory.
  static constexpr std::size_t kHistory = 4096;
  void Describe(std::vector<BfcSnapshot::SizeAt>& history) const;

  // Whether R5 holds and every count is right. For tests; O(blocks).
  bool IsConsistent() const;

 private:
  const BfcEndPolicy& PolicyOf(BfcEnd end) const {
    return end == BfcEnd::kUpper ? rules_.upper : rules_.lower;
  }
  bool IsSplit(std::size_t size, const BfcAsk& ask) const;  // R10

  // Whether a block of the front cache may serve `ask`.
  static bool IsPlain(const BfcAsk& ask) {
    return ask.alignment <= kBfcGranuleBytes && ask.freed_before == 0;
  }
  // Searches the index, and flushes the front cache if that is needed.
  Block* Search(const BfcAsk& ask) noexcept;
  void CountTake(Block* block, const BfcAsk& ask) noexcept;
  Block* FindAndCarve(const BfcAsk& ask) noexcept;
  // Removes a large enough hole from its index; null if there is none.
  Block* TakeHole(const BfcAsk& ask);
  // Split a hole, already removed from its index, for the request.
  Block* Carve(Block* block, const BfcAsk& ask) noexcept;
  Block* CarveHigh(Block* block, const BfcAsk& ask) noexcept;
  // Null if the gap is too small.
  Block* TakeFromGap(const BfcAsk& ask) noexcept;
  // Whether no block of its own end lies between `block` and the middle (R68).
  static bool IsInnermost(const Block* block);
  // Splits `block`, which is in no index, as BfcRegions does. Both parts get
  // its stamp.
  Block* Split(Block* block, std::size_t low_bytes) noexcept;
  // Puts cached blocks, linked by free_next, into the index.
  void Join(Block* cached) noexcept;
  void LimitCache() noexcept;
  // Coalesces two free neighbours that are in no index.
  void Join(Block* left, Block* right) noexcept;
  // Sets the stamp of `left` to the later of both.
  void JoinStamps(Block* left, Block* right) noexcept;
  // Coalesces `block`, free and in no index, with its free neighbours.
  Block* Coalesce(Block* block, bool ignores_stamps) noexcept;
  void InsertFree(Block* block);
  void RemoveFree(Block* block);
  void CountAction(Block* block);

  const BfcArenaRules rules_;
  std::size_t most_waste_bytes_;
  BfcRegions regions_;
  BfcIndex lower_;
  std::unique_ptr<BfcIndex> upper_;  // Null without two ends.
  Block* gap_ = nullptr;             // In no index.
  WaitingList waiting_;
  FrontCache cache_;
  RecordStock records_{RecordSlab::Noted()};
  std::size_t block_count_ = 0;
  std::uint64_t actions_ = 0;     // Calls that changed the state.
  Stats stats_;                   // Counters only.
  std::uint64_t uncounted_ = 0;   // Allocations before ClearNumbers.
  BfcSnapshot::Numbers numbers_;  // Without the values that numbers() computes.
  std::vector<BfcSnapshot::SizeAt> history_;  // A ring; empty without history.
};

// Inline, because they are part of every hit.

inline bool BfcArena::IsSplit(std::size_t size, const BfcAsk& ask) const {
  if (PolicyOf(ask.end).splits_exactly) return size > ask.rounded;
  return size >= 2 * ask.rounded || size - ask.rounded >= most_waste_bytes_;
}

inline Block* BfcArena::Take(const BfcAsk& ask) noexcept {
  Block* block = IsPlain(ask) ? cache_.Take(ask.rounded) : nullptr;
  if (block == nullptr) block = Search(ask);
  if (block != nullptr) CountTake(block, ask);
  return block;
}

inline void BfcArena::CountTake(Block* block, const BfcAsk& ask) noexcept {
  BfcNote& note = NoteOf(block);
  note.allocation_id = static_cast<std::int64_t>(++stats_.allocations);  // R12
  note.requested_bytes = ask.bytes;
  note.annotation = ask.annotation;
  block->flags = kBlockLive;
  block->offset_units = 0;
  block->requested = ask.bytes;
  ++RegionOf(block).live_blocks;

  stats_.requested_bytes += ask.bytes;
  stats_.total_requested_bytes += ask.bytes;
  numbers_.bytes_in_use += block->size;
  numbers_.peak_bytes_in_use =
      std::max(numbers_.peak_bytes_in_use, numbers_.bytes_in_use);
  numbers_.largest_alloc_size =
      std::max(numbers_.largest_alloc_size, block->size);
  CountAction(block);
}

inline void BfcArena::CountAction(Block* block) {
  NoteOf(block).action = ++actions_;
  if (history_.empty()) return;
  history_[actions_ % kHistory] = {actions_, numbers_.bytes_in_use};
}

inline void BfcArena::InsertFree(Block* block) {
  const BfcEnd end = NoteOf(block).end;
  if (end == BfcEnd::kLower) {
    lower_.Insert(block);
  } else if (end == BfcEnd::kUpper) {
    upper_->Insert(block);
  } else {
    gap_ = block;
    block->is_free = true;
  }
}

inline void BfcArena::RemoveFree(Block* block) {
  const BfcEnd end = NoteOf(block).end;
  if (end == BfcEnd::kLower) {
    lower_.Remove(block);
  } else if (end == BfcEnd::kUpper) {
    upper_->Remove(block);
  } else {
    gap_ = nullptr;
    block->is_free = false;
  }
}

}  // namespace strata

#endif  // STRATA_STRATEGY_BFC_ARENA_ARENA_H_
