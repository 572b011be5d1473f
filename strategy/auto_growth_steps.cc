// The plans of AutoGrowthAllocator: how they begin, and what they leave behind.

#include <glog/logging.h>

#include <mutex>

#include "strata/strategy/auto_growth_allocator.h"

namespace strata {
namespace {

const std::byte* EndOf(const Block* block) { return block->data + block->size; }

}  // namespace

void AutoGrowthAllocator::ProvidePlan(StepPlan::Count takes) noexcept {
  StepPlan::Memory memory(RecordSlab::Instance());
  const bool is_filled = memory.Fill(takes);
  const std::lock_guard<ChainLock> guard(lock_);
  if (!planner_.wants_memory()) return;
  planner_.Provide(is_filled ? &memory : nullptr);
  TuneCache();
}

void AutoGrowthAllocator::TuneCache() noexcept {
  if (!planner_.sees_all()) return cache_.Open();
  Join(cache_.TakeAll());
  cache_.Close(planner_.is_following() ? &planner_.plan() : nullptr);
}

bool AutoGrowthAllocator::MayFind() noexcept {
  // Who walks may ask the heap.
  if (planner_.wants_memory() &&
      !planner_.ProvideAgain(RecordSlab::Instance())) {
    return false;
  }
  if (planner_.is_following()) return true;
  planner_.Prepare(takes_ - gives_, records_);
  TuneCache();
  return true;
}

[[gnu::noinline]] void AutoGrowthAllocator::NoteGive(
    const Block& block) noexcept {
  if (planner_.is_following()) return LeavePlan();
  planner_.NoteGive(block, records_);
  TuneCache();
}

void AutoGrowthAllocator::EndBoundPlan() noexcept {
  StopFollowing();
  planner_.End(records_);
  TuneCache();
  records_.Shed();
}

void AutoGrowthAllocator::LeavePlan() noexcept {
  StopFollowing();
  planner_.Leave(records_);
  TuneCache();
  records_.Shed();
}

void AutoGrowthAllocator::StopFollowing() noexcept {
  if (!planner_.is_following()) return;
  CatchUp(planner_.plan());
  planned_takes_ += planner_.plan().takes();
}

bool AutoGrowthAllocator::PausePlan() noexcept {
  if (!planner_.is_following()) return false;
  StepPlan& plan = planner_.plan();
  // To resume takes as many as to catch up.
  if (!records_.Has(plan.spare_count())) return false;
  CatchUp(plan);
  return true;
}

void AutoGrowthAllocator::CatchUp(StepPlan& plan) noexcept {
  RecordList& spare = plan.spare_records();
  while (!spare.empty()) records_.Push(spare.Pop());
  // Each was counted when it was served; here only the difference changes. What
  // the plan used is of the current epoch, as it was when it was recorded: who
  // ends an epoch, or recalls loans, has the plan end first.
  const std::uint64_t takes = takes_ + plan.takes();
  const std::uint64_t gives = gives_ + plan.gives();
  plan.ForEachGiven([this](Block* record) { PutBack(record); });
  Block* block = nullptr;
  plan.ForEachTaken([&](Block* record) {
    block = BlockAt(record->data, *record->chunk, block);
    CutOut(block, record);
    block = record;
  });
  takes_ = takes;
  gives_ = gives;
}

void AutoGrowthAllocator::ResumePlan() noexcept {
  StepPlan& plan = planner_.plan();
  const std::uint64_t takes = takes_ - plan.takes();
  const std::uint64_t gives = gives_ - plan.gives();
  plan.ForEachTaken([this](Block* record) { PutBack(record); });
  Block* block = nullptr;
  plan.ForEachGiven([&](Block* record) {
    block = BlockAt(record->data, *record->chunk, block);
    CutOut(block, record);
    block = record;
  });
  takes_ = takes;
  gives_ = gives;
  // There are as many blocks as before, and so as many records are left.
  RecordList& spare = plan.spare_records();
  while (spare.size() < plan.spare_count()) spare.Push(records_.Pop());
  records_.Shed();
}

Block* AutoGrowthAllocator::BlockAt(const std::byte* data, const Chunk& chunk,
                                    Block* from) {
  Block* block = from != nullptr && from->chunk == &chunk ? from : chunk.first;
  while (EndOf(block) <= data) block = block->next;
  return block;
}

void AutoGrowthAllocator::CutOut(Block* block, Block* record) noexcept {
  DCHECK(block->is_free && record->data >= block->data &&
         EndOf(record) <= EndOf(block))
      << "a plan has what is not free: " << record->data;
  FreeIndex& blocks = index(*block);
  blocks.Remove(block);
  if (BlockList::IsWholeChunk(block)) UseIdle(block->chunk);
  if (EndOf(record) != EndOf(block)) {
    const auto low_bytes =
        static_cast<std::size_t>(EndOf(record) - block->data);
    Block* const rest = blocks_.Split(block, low_bytes, records_.Pop());
    rest->is_free = true;
    rest->flags = 0;
    rest->offset_units = block->offset_units;
    blocks.Insert(rest);
  }
  if (block->data != record->data) {
    blocks_.SplitOff(block, record);
    blocks.Insert(block);
  } else {
    BlockList::Replace(block, record);
    Discard(block, records_);
  }
  taken_bytes_ += record->size;
}

void AutoGrowthAllocator::PutBack(Block* record) noexcept {
  Block* const block = records_.Pop();
  block->Describe(*record);
  BlockList::Replace(record, block);
  Insert(block, epochs_.current());
}

}  // namespace strata
