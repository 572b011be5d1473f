// The plans of AutoGrowthAllocator: how they begin, and what they leave behind.

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
  if (planner_.is_following()) return EndPlan();
  planner_.NoteGive(block, records_);
  TuneCache();
}

[[gnu::noinline]] void AutoGrowthAllocator::EndPlan() noexcept {
  if (planner_.is_following()) CatchUp(planner_.plan());
  planner_.End(records_);
  TuneCache();
  records_.Shed();
}

void AutoGrowthAllocator::CatchUp(StepPlan& plan) noexcept {
  // Each was counted when it was served; here only the difference changes. What
  // the plan used is of the current epoch, as it was when it was recorded: who
  // ends an epoch, or recalls loans, has the plan end first.
  const std::uint64_t takes = takes_ + plan.takes();
  const std::uint64_t gives = gives_ + plan.gives();
  plan.ForEachGiven([this](Block* block) { Insert(block, epochs_.current()); });
  Block* tile = nullptr;  // of the chunk that is looked at
  plan.ForEachTaken([&](Block* record, bool is_live) {
    if (tile == nullptr || tile->chunk != record->chunk) {
      tile = record->chunk->first;
    }
    if (!is_live) return Discard(record, records_);
    while (EndOf(tile) <= record->data) tile = tile->next;
    CutOut(tile, record, plan);
    tile = record;
  });
  takes_ = takes;
  gives_ = gives;
}

void AutoGrowthAllocator::CutOut(Block* tile, Block* record,
                                 StepPlan& plan) noexcept {
  FreeIndex& blocks = index(*tile);
  blocks.Remove(tile);
  if (BlockList::IsWholeChunk(tile)) UseIdle(tile->chunk);
  if (EndOf(record) != EndOf(tile)) {
    const auto low_bytes = static_cast<std::size_t>(EndOf(record) - tile->data);
    Block* const rest = blocks_.Split(tile, low_bytes, plan.PopRecord());
    rest->is_free = true;
    rest->flags = 0;
    rest->offset_units = tile->offset_units;
    blocks.Insert(rest);
  }
  if (tile->data != record->data) {
    const auto low_bytes = static_cast<std::size_t>(record->data - tile->data);
    blocks_.Split(tile, low_bytes, record);
    blocks.Insert(tile);
  } else {
    BlockList::Replace(tile, record, records_);
  }
  taken_bytes_ += record->size;
}

}  // namespace strata
