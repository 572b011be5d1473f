#ifndef STRATA_STRATEGY_BFC_ARENA_H_
#define STRATA_STRATEGY_BFC_ARENA_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "strata/allocation/front_cache.h"
#include "strata/allocation/stats.h"
#include "strata/allocation/visitor.h"
#include "strata/strategy/bfc/bfc_index.h"
#include "strata/strategy/bfc/geometry.h"
#include "strata/strategy/bfc/note.h"
#include "strata/strategy/bfc/regions.h"
#include "strata/strategy/bfc/snapshot.h"
#include "strata/strategy/bfc/timestamps.h"
#include "strata/strategy/front_cache_policy.h"
#include "strata/strategy/record_stock.h"

namespace strata {

// How the holes of one end are used (R66).
struct BfcEndPolicy {
  // Which of two holes of equal size is taken first.
  OrderedIndex::AddressOrder hole_order =
      OrderedIndex::AddressOrder::kAscending;
  // Splits whatever is left; otherwise by R10.
  bool splits_exactly = false;
};

// What BfcArena is built with.
struct BfcArenaRules {
  BfcPlacement placement = BfcPlacement::kCompat;
  bool coalesces_regions = false;  // those that follow each other
  bool keeps_history = false;      // of the bytes in use
  // Which freed blocks stay whole; none: none. Not with a counter, nor two
  // ends.
  std::optional<FrontCachePolicy> front_cache;
  // Stamps frees; null: they are safe at once.
  std::shared_ptr<SharedCounter> counter;
  // Requests say from which end of the one region they are served.
  bool has_two_ends = false;
  BfcEndPolicy lower;  // also without two ends
  BfcEndPolicy upper;
};

// One request, as BfcArena sees it.
struct BfcAsk {
  std::size_t bytes = 0;    // as asked
  std::size_t rounded = 0;  // to whole granules
  std::size_t alignment = kBfcGranuleBytes;
  std::uint64_t freed_before = 0;  // 0: any memory will do
  const BfcAnnotation* annotation = nullptr;
  BfcEnd end = BfcEnd::kLower;  // kUpper with two ends only
};

// All that a BfcAllocator keeps under its lock: regions, their blocks, which of
// them are free, and the counts.
//
// Model: regions are tiled by blocks. A request takes the first free block that
//   is large enough, in the order of BfcIndex, and splits it if half of it or
//   more than `most_waste` would be wasted. A freed block joins its free
//   neighbours; one freed with a stamp waits for the stamp to be safe first.
//   With a front cache, freed blocks of sizes that come again stay whole there,
//   and are like live ones to their neighbours, until a search finds nothing
//   else; whoever looks at what is free calls JoinAll first.
//   With two ends, the region is a lower part, a gap and an upper part: a
//   request takes a hole of its own part, else it carves the gap from its side;
//   what is freed beside the gap becomes part of it. So each end's addresses
//   depend on its own requests alone, until the gap is used up.
// Threads: none; the allocator's lock guards it.
// Cost: that of the index; O(1) beside it, unless said otherwise. No heap.
// Source: tf_bfc.md R5 to R13, R21, R24, R29, R30, R38, R39, R47, R63 to R69.
class BfcArena {
 public:
  explicit BfcArena(BfcArenaRules rules);
  BfcArena(const BfcArena&) = delete;
  BfcArena& operator=(const BfcArena&) = delete;

  // More than this is never wasted by not splitting (R10).
  void set_most_waste(std::size_t bytes) { most_waste_bytes_ = bytes; }

  // Records for Take and AddRegion.
  static constexpr std::size_t kRecordsPerTake = 2;
  bool IsShortOfRecords() const { return records_.size() < kRecordsPerTake; }
  RecordStock& records() { return records_; }

  // Null if no block fits, or IsShortOfRecords().
  Block* Take(const BfcAsk& ask) noexcept;
  // Returns the annotation that the allocation had.
  const BfcAnnotation* Give(Block* block) noexcept;

  // Has the blocks of the front cache join their neighbours. O(its blocks).
  void JoinAll() noexcept { Join(cache_.TakeAll()); }

  // R38: joins the blocks whose stamp is below `frontier`.
  void MergeSafe(std::uint64_t frontier) noexcept;
  bool has_waiting() const { return !waiting_.empty(); }
  std::size_t waiting_count() const { return waiting_.count(); }
  // R39: joins blocks whatever their stamp, oldest first, until one serves
  // `ask`, which has no stamp; says whether one does. O(waiting blocks).
  bool MergeUnsafe(const BfcAsk& ask) noexcept;

  // Adds memory from the system; there is a record at hand. If the region
  // becomes part of another one, it is no longer needed and returned.
  BfcRegion* AddRegion(BfcRegion* region) noexcept;
  // Whether nothing in it is in use, nor may be (W8). O(blocks) with a counter.
  bool IsIdle(const BfcRegion& region, std::uint64_t frontier) const;
  // Takes an idle region out. Nothing is in the front cache.
  void RemoveRegion(BfcRegion* region) noexcept;
  BfcRegion* first_region() const { return regions_.first(); }
  std::size_t region_bytes() const { return regions_.bytes(); }

  std::size_t in_use_bytes() const { return numbers_.bytes_in_use; }
  std::size_t LargestFreeBytes() const;
  BfcSnapshot::Numbers numbers() const;
  Stats stats() const;  // without what the allocator counts
  void ResetPeak();
  // R49.
  void ClearNumbers();

  std::size_t block_count() const { return block_count_; }
  std::size_t region_count() const { return regions_.count(); }
  void Describe(std::vector<BlockInfo>& blocks) const;
  // Appends regions and chunks, which have room, and the annotations of the
  // chunks, held. No heap.
  void Describe(BfcSnapshot& snapshot,
                std::vector<const BfcAnnotation*>& annotations) const;
  // Oldest first; appends to `history`, which has room for kHistory.
  static constexpr std::size_t kHistory = 4096;
  void Describe(std::vector<BfcSnapshot::SizeAt>& history) const;

  // Whether R5 holds and every count is right. For tests; O(blocks).
  bool IsConsistent() const;

 private:
  const BfcEndPolicy& PolicyOf(BfcEnd end) const {
    return end == BfcEnd::kUpper ? rules_.upper : rules_.lower;
  }
  bool IsSplit(std::size_t size, const BfcAsk& ask) const;  // R10

  // Whether a block of the front cache will do.
  static bool IsPlain(const BfcAsk& ask) {
    return ask.alignment <= kBfcGranuleBytes && ask.freed_before == 0;
  }
  // Past the front cache, but if need be with what it keeps.
  Block* Search(const BfcAsk& ask) noexcept;
  // Notes that `block` is handed out.
  void CountTake(Block* block, const BfcAsk& ask) noexcept;
  Block* FindAndCarve(const BfcAsk& ask) noexcept;
  // Out of its index, and large enough; null if there is none.
  Block* TakeHole(const BfcAsk& ask);
  // Cut a hole that was taken to the request.
  Block* Carve(Block* block, const BfcAsk& ask) noexcept;
  Block* CarveHigh(Block* block, const BfcAsk& ask) noexcept;
  // From the gap; null if it is too small.
  Block* TakeFromGap(const BfcAsk& ask) noexcept;
  // Whether nothing of the block's own end lies towards the middle (R68).
  static bool IsInnermost(const Block* block);
  // Cuts `block`, which is in no index, as BfcRegions does; both parts keep its
  // stamp.
  Block* Split(Block* block, std::size_t low_bytes) noexcept;
  // Blocks of the front cache, linked by free_next, become free like others.
  void Join(Block* cached) noexcept;
  // As the bytes of the regions have changed.
  void LimitCache() noexcept;
  // Joins two free neighbours that are in no index.
  void Join(Block* left, Block* right) noexcept;
  // `left` is about to be both: gives it the later of their stamps.
  void JoinStamps(Block* left, Block* right) noexcept;
  // Joins `block`, which is free and in no index, with its free neighbours.
  Block* Coalesce(Block* block, bool ignores_stamps) noexcept;
  void InsertFree(Block* block);
  void RemoveFree(Block* block);
  void CountAction(Block* block);

  const BfcArenaRules rules_;
  std::size_t most_waste_bytes_;
  BfcRegions regions_;
  BfcIndex lower_;
  std::unique_ptr<BfcIndex> upper_;  // null without two ends
  Block* gap_ = nullptr;             // in no index
  WaitingList waiting_;
  FrontCache cache_;
  RecordStock records_{RecordSlab::Noted()};
  std::size_t block_count_ = 0;
  std::uint64_t actions_ = 0;     // calls that changed something
  Stats stats_;                   // counters only
  std::uint64_t uncounted_ = 0;   // allocations before ClearNumbers
  BfcSnapshot::Numbers numbers_;  // but for those that numbers() makes
  std::vector<BfcSnapshot::SizeAt> history_;  // a ring; empty if none is kept
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

#endif  // STRATA_STRATEGY_BFC_ARENA_H_
