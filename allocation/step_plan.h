#ifndef STRATA_ALLOCATION_STEP_PLAN_H_
#define STRATA_ALLOCATION_STEP_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>

#include "strata/allocation/allocation.h"
#include "strata/allocation/block_flags.h"
#include "strata/allocation/record_slab.h"

namespace strata {

// One step of a program that repeats itself: which block each of its requests
// got, and when each was freed, so that the next step is served by reading on.
//
// Model: recorded while the strategy serves a step as ever; closed if what is
//   live is the same before and after, block by block. From then on the
//   strategy's own lists stand still as they were when the step began, and who
//   follows the plan is given the blocks of the recorded step, which are free
//   at that point of every step. Each request of the plan has a record of its
//   own; only blocks that are live when the step begins have the strategy's.
//   When the plan ends, what is live then and was not when the step began is to
//   be cut from the strategy's free blocks, and the other way round.
// Threads: none; the strategy's lock guards it.
// Cost: 40 bytes a request, and one record; one more for each that is live at
//   once. Following: O(1), the next 16 bytes of an array and the block's
//   record. Close: O(n log n). No heap call but Memory's, for the longest step
//   so far.
// Source: the iterations of training ask for the same sizes in the same order,
//   which offline planners build on (papers.md §3); this one is online, and
//   has the addresses from the strategy.
class StepPlan {
  struct Entry;

 public:
  // Of an array index, and of what a step may have.
  using Count = std::uint32_t;

  // What a plan needs, fetched before the lock is taken. Destroy it without
  // the lock: it has what the plan had before.
  class Memory {
   public:
    explicit Memory(RecordSlab& slab) : slab_(slab) {}
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory() { slab_.Drain(records_); }

    // For a step of `takes` requests. False if the host is out of memory.
    bool Fill(Count takes) noexcept;

   private:
    friend class StepPlan;

    RecordSlab& slab_;
    RecordList records_;
    std::unique_ptr<Entry[]> entries_;
    std::unique_ptr<Count[]> order_;
    Count takes_ = 0;
  };

  StepPlan() = default;
  StepPlan(const StepPlan&) = delete;
  StepPlan& operator=(const StepPlan&) = delete;

  // Exchanges what it has for `memory`. The plan is empty.
  void Use(Memory& memory) noexcept;
  // The same with what it had before and what is in `slab`; false, and nothing
  // is done, if that is not enough for `takes` requests. No heap call.
  bool UseAgain(RecordSlab& slab, Count takes) noexcept;
  // Puts into `records` those that it has: all but those of blocks that are
  // live, if it was closed. The plan is empty, and not to be used until Use or
  // UseAgain.
  void Clear(RecordList& records) noexcept;

  // ---- To record. False: the step has more requests than were expected.

  // Requests so far.
  Count recorded() const { return takes_; }
  // A request of `bytes` got `block`.
  bool NoteTake(Block& block, std::size_t bytes) noexcept;
  // `block` was freed; before it is joined with others.
  bool NoteGive(const Block& block) noexcept;
  // The step is over, and the next one begins. If true, the plan can be
  // followed; if false, it is to be cleared.
  bool Close(RecordList& records) noexcept;

  // ---- To follow.

  // A live block for a request of `bytes`, without an offset, as all are that
  // it has; null if something else is next.
  Block* Take(std::size_t bytes) noexcept {
    const Entry& entry = *next_;
    // That of a free, -1, is no number of granules.
    if (static_cast<std::size_t>(entry.granules) != bytes / kGranuleBytes) {
      return nullptr;
    }
    Advance();
    Block* const block = entry.block;
    SetFlags(*block, kBlockLive);
    return block;
  }
  // False, and nothing is done, if its free is not what is next.
  bool Give(Block* block) noexcept {
    const Entry& entry = *next_;
    if (entry.block != block || entry.granules != kGive) return false;
    Advance();
    SetFlags(*block, 0);
    return true;
  }
  // Steps followed to their end.
  std::uint64_t steps() const { return steps_; }

  // ---- To see where it is.

  // Requests and frees that were served.
  std::uint64_t takes() const { return steps_ * takes_ + TakesBefore(next_); }
  std::uint64_t gives() const;
  // Calls `give` with each block that was live when the step began, and is not
  // now; in the order of their addresses.
  template <class Function>
  void ForEachGiven(Function give) const;
  // Calls `take` with the record of each block that is live, and that no step
  // begins with, in the order of their addresses.
  template <class Function>
  void ForEachTaken(Function take) const;
  // Records for what is left over where those are cut from free blocks, and for
  // what those that are given leave: as many as that can take.
  RecordList& spare_records() { return records_; }
  std::size_t spare_count() const { return spare_count_; }

 private:
  static constexpr std::size_t kGranuleBytes = 256;
  static constexpr std::int32_t kGive = -1;

  struct Entry {
    union {
      Block* block = nullptr;
      std::byte* data;  // of a free that is recorded
    };
    std::int32_t granules = 0;  // that were asked for; kGive: a free
    Count partner = 0;  // the entry of the block's free, or of its request
  };

  // kGive if there are too many for an entry.
  static std::int32_t Granules(std::size_t bytes) {
    constexpr std::size_t kMost = std::numeric_limits<std::int32_t>::max();
    const std::size_t granules = bytes / kGranuleBytes;
    return granules <= kMost ? static_cast<std::int32_t>(granules) : kGive;
  }
  Count size() const { return static_cast<Count>(end_ - entries_.get()); }
  Count position() const { return static_cast<Count>(next_ - entries_.get()); }
  Count TakesBefore(const Entry* end) const;
  bool IsGive(Count i) const {
    return (entries_[i].partner & kRecordedGive) != 0;
  }
  std::byte* DataOf(Count i) const {
    return IsGive(i) ? entries_[i].data : entries_[i].block->data;
  }
  std::int32_t GranulesOf(Count i) const {
    return IsGive(i) ? entries_[i].granules : Granules(entries_[i].block->size);
  }
  // Orders the entries by address and time.
  void Sort() noexcept;
  // Finds the partners of the entries of one address, from `first` on; false if
  // the step does not end as it began.
  bool Pair(Count first, Count end) noexcept;
  bool PairAll() noexcept;
  // The free of a block comes before its request: it lives beyond the end.
  bool IsSpanning(Count take) const { return entries_[take].partner < take; }
  // Whether its block is not live now, but was when the step began; or the
  // other way round.
  bool IsGiven(Count take) const {
    return IsSpanning(take) && entries_[take].partner < position() &&
           take >= position();
  }
  bool IsTaken(Count take) const {
    return !IsSpanning(take) && take < position() &&
           entries_[take].partner >= position();
  }
  void Advance() noexcept {
    if (++next_ == end_) [[unlikely]] {
      next_ = entries_.get();
      ++steps_;
    }
  }

  // Of Entry::partner, while a step is recorded.
  static constexpr Count kRecordedGive = Count{1} << 31;

  std::unique_ptr<Entry[]> entries_;
  std::unique_ptr<Count[]> order_;  // of requests, by address, once closed
  Count capacity_ = 0;              // of entries_ and order_
  Count limit_ = 0;                 // entries of the step that is recorded
  Count takes_ = 0;                 // recorded
  Count ordered_ = 0;               // entries of order_
  Entry* next_ = nullptr;           // to record, or to follow
  Entry* end_ = nullptr;            // once closed
  std::uint64_t steps_ = 0;
  std::size_t spare_count_ = 0;  // of records_, once closed
  RecordList records_;
};

template <class Function>
void StepPlan::ForEachGiven(Function give) const {
  for (Count i = 0; i < ordered_; ++i) {
    if (IsGiven(order_[i])) give(entries_[order_[i]].block);
  }
}

template <class Function>
void StepPlan::ForEachTaken(Function take) const {
  for (Count i = 0; i < ordered_; ++i) {
    if (IsTaken(order_[i])) take(entries_[order_[i]].block);
  }
}

}  // namespace strata

#endif  // STRATA_ALLOCATION_STEP_PLAN_H_
