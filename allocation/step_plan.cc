#include "strata/allocation/step_plan.h"

#include <algorithm>
#include <new>
#include <numeric>
#include <utility>

namespace strata {
namespace {

// It still says what memory it was, as other records that are no block's do.
void Drop(Block* record, RecordList& records) {
  record->chunk = nullptr;
  records.Push(record);
}

}  // namespace

bool StepPlan::Memory::Fill(Count takes) noexcept {
  const std::size_t entries = std::size_t{2} * takes;
  entries_.reset(new (std::nothrow) Entry[entries]);
  order_.reset(new (std::nothrow) Count[entries]);
  takes_ = takes;
  return entries_ != nullptr && order_ != nullptr &&
         slab_.Fill(records_, entries);
}

void StepPlan::Use(Memory& memory) noexcept {
  std::swap(entries_, memory.entries_);
  std::swap(order_, memory.order_);
  std::swap(records_, memory.records_);
  capacity_ = 2 * std::exchange(memory.takes_, 0);
  limit_ = capacity_;
  next_ = entries_.get();
}

bool StepPlan::UseAgain(RecordSlab& slab, Count takes) noexcept {
  const Count entries = 2 * takes;
  if (entries > capacity_) return false;
  // So that others need not wait for long.
  constexpr std::size_t kBatch = 64;
  while (records_.size() < entries) {
    const std::size_t before = records_.size();
    slab.FillFromStock(records_,
                       std::min<std::size_t>(entries, before + kBatch));
    if (records_.size() == before) {
      slab.Drain(records_);
      return false;
    }
  }
  limit_ = entries;
  next_ = entries_.get();
  return true;
}

void StepPlan::Clear(RecordList& records) noexcept {
  if (end_ != nullptr) {
    for (Count i = 0; i < ordered_; ++i) {
      const Count take = order_[i];
      if (IsSpanning(take) ? IsGiven(take) : !IsTaken(take)) {
        Drop(entries_[take].block, records);
      }
    }
  } else if (next_ != nullptr) {
    for (const Entry* entry = entries_.get(); entry != next_; ++entry) {
      if ((entry->partner & kRecordedGive) == 0) Drop(entry->block, records);
    }
  }
  while (Block* record = records_.Pop()) records.Push(record);
  next_ = nullptr;
  end_ = nullptr;
  limit_ = 0;
  takes_ = 0;
  ordered_ = 0;
  spare_count_ = 0;
  steps_ = 0;
}

bool StepPlan::NoteTake(Block& block, std::size_t bytes) noexcept {
  const std::int32_t granules = Granules(bytes);
  if (position() == limit_ || 2 * takes_ == limit_ || granules == kGive) {
    return false;
  }
  Block* const record = records_.Pop();
  record->Describe(block);
  record->free_next = &block;  // until the plan is closed
  next_->block = record;
  next_->granules = granules;
  next_->partner = 0;
  ++next_;
  ++takes_;
  return true;
}

bool StepPlan::NoteGive(const Block& block) noexcept {
  const std::int32_t granules = Granules(block.size);
  if (position() == limit_ || granules == kGive) return false;
  next_->data = block.data;
  next_->granules = granules;
  next_->partner = kRecordedGive;
  ++next_;
  return true;
}

void StepPlan::Sort() noexcept {
  const Count count = position();
  std::iota(order_.get(), order_.get() + count, Count{0});
  std::sort(order_.get(), order_.get() + count, [this](Count a, Count b) {
    const std::byte* const at_a = DataOf(a);
    const std::byte* const at_b = DataOf(b);
    return at_a < at_b || (at_a == at_b && a < b);
  });
}

bool StepPlan::Pair(Count first, Count end) noexcept {
  if ((end - first) % 2 != 0) return false;
  // A block that is live when the step begins has to be there when it ends.
  const bool spans = IsGive(order_[first]);
  for (Count k = first; k < end; ++k) {
    if (IsGive(order_[k]) != (((k - first) % 2 == 0) == spans)) return false;
  }
  for (Count k = first + (spans ? 1 : 0); k < end; k += 2) {
    const Count take = order_[k];
    const Count give = order_[k + 1 == end ? first : k + 1];
    if (GranulesOf(take) != GranulesOf(give)) return false;
    entries_[take].partner = give;
    entries_[give].partner = take | kRecordedGive;
  }
  return true;
}

bool StepPlan::PairAll() noexcept {
  const Count count = position();
  for (Count first = 0; first < count;) {
    const std::byte* const data = DataOf(order_[first]);
    Count end = first + 1;
    while (end < count && DataOf(order_[end]) == data) ++end;
    if (!Pair(first, end)) return false;
    first = end;
  }
  return true;
}

bool StepPlan::Close(RecordList& records) noexcept {
  const Count count = position();
  if (count == 0 || count != 2 * takes_) return false;
  Sort();
  if (!PairAll()) return false;
  // From here on it is one: the frees get the blocks of their requests.
  ordered_ = 0;
  for (Count k = 0; k < count; ++k) {
    const Count take = order_[k];
    if (IsGive(take)) continue;
    Entry& entry = entries_[take];
    order_[ordered_++] = take;
    if (IsSpanning(take)) {
      Block* const record = entry.block;
      entry.block = record->free_next;
      Drop(record, records);
    }
    Entry& give = entries_[entry.partner];
    give.block = entry.block;
    give.granules = kGive;
  }
  Count live = 0;
  Count most_live = 0;
  Count spanning = 0;
  for (Count i = 0; i < count; ++i) {
    Entry& entry = entries_[i];
    entry.partner &= ~kRecordedGive;
    const bool is_give = entry.granules == kGive;
    if (IsSpanning(is_give ? entry.partner : i)) {
      spanning += is_give ? 1 : 0;
    } else {
      live += is_give ? ~Count{0} : 1;
      most_live = std::max(most_live, live);
    }
  }
  spare_count_ = std::size_t{most_live} + spanning;
  while (records_.size() > spare_count_) records.Push(records_.Pop());
  end_ = next_;
  next_ = entries_.get();
  return true;
}

StepPlan::Count StepPlan::TakesBefore(const Entry* end) const {
  Count takes = 0;
  for (const Entry* entry = entries_.get(); entry != end; ++entry) {
    takes += entry->granules != kGive ? 1 : 0;
  }
  return takes;
}

std::uint64_t StepPlan::gives() const {
  return steps_ * takes_ + position() - TakesBefore(next_);
}

}  // namespace strata
