// The lists of VirtualMemoryAllocator: blocks become pending, free, live or
// holes, also after a failed growth.

#include <algorithm>
#include <utility>

#include "strata/strategy/virtual_memory/virtual_memory_allocator.h"

namespace strata {

using vmm::EndOf;
using vmm::RangeOf;

std::size_t VirtualMemoryAllocator::IdlePageBytesLocked() const {
  std::size_t bytes = refused_bytes_;
  ForEachFreeHandle(
      [&](const Block&, const PageHandle& handle) { bytes += handle.bytes; });
  return bytes;
}

std::size_t VirtualMemoryAllocator::LentPageBytes() const {
  const auto is_idle = [](const Block* block) {
    return block != nullptr && (block->is_free || HasFlag(*block, kBlockLent));
  };
  std::size_t bytes = 0;
  for (const Chunk* chunk = blocks_.first_chunk(); chunk != nullptr;
       chunk = chunk->next) {
    if (!chunk->is_range || chunk->loans == 0) continue;
    for (Block* block = chunk->first; block != nullptr; block = block->next) {
      if (block->is_free || !is_idle(block)) continue;
      // The run of free and lent blocks around it.
      Block* first = block;
      while (is_idle(first->previous)) first = first->previous;
      while (is_idle(block->next)) block = block->next;
      const AddressRange& range = RangeOf(*block);
      bytes += static_cast<std::size_t>(range.PageUp(EndOf(*block)) -
                                        range.PageDown(first->data));
      for (Block* part = first; part != block->next; part = part->next) {
        if (!part->is_free) continue;
        ForEachFreeHandleOf(*part, [&](const Block&, const PageHandle& handle) {
          bytes -= handle.bytes;
        });
      }
    }
  }
  return bytes;
}

std::size_t VirtualMemoryAllocator::IdlePageBytes() const noexcept {
  const auto joined = LockJoined();
  return IdlePageBytesLocked();
}

bool VirtualMemoryAllocator::CollectFree(GrowthPlan& plan) const {
  const GrowthTarget& target = plan.target;
  bool fits = true;
  // From the smallest blocks to the largest, so that the largest lose their
  // handles first. With the smallest first, 16 recordings reserve 1.028 instead
  // of 1.023.
  ForEachFreeHandle([&](Block& block, PageHandle& handle) {
    if (target.Overlaps(handle)) return;
    fits = fits && plan.free_handles.Add(handle, block);
  });
  plan.free_handles.Sort();
  return fits;
}

Block* VirtualMemoryAllocator::CutAt(Block* block, std::byte* at) noexcept {
  while (EndOf(*block) <= at) block = block->next;
  if (block->data == at) return block;
  const auto low_bytes = static_cast<std::size_t>(at - block->data);
  if (!block->is_free) {
    Block* const rest = blocks_.SplitUnusable(block, low_bytes, records_.Pop());
    HolesOf(*rest).Insert(rest);
    return rest;
  }
  RemoveFree(block);
  Block* const rest = blocks_.Split(block, low_bytes, records_.Pop());
  rest->is_free = true;
  rest->flags = 0;
  rest->offset_units = block->offset_units;
  AddFree(block);
  AddFree(rest);
  return rest;
}

void VirtualMemoryAllocator::MakePending(Block* block) noexcept {
  if (block->is_free) {
    RemoveFree(block);
    blocks_.SubtractMapped(block->size);
  } else {
    HolesOf(*block).Remove(block);
  }
  blocks_.SetUnusable(block, BlockList::kPendingPool);
}

void VirtualMemoryAllocator::TakeFreeHandle(FreeHandle& free) noexcept {
  Block* const block = CutAt(free.block, free.handle->base);
  // The block after it may not exist yet.
  if (EndOf(*block) != free.handle->end()) CutAt(block, free.handle->end());
  MakePending(block);
  free.block = block;
}

void VirtualMemoryAllocator::TakePlanned(GrowthPlan& plan) noexcept {
  for (const GrowthPiece& piece : plan.pieces) {
    if (!piece.is_new()) TakeFreeHandle(*piece.from);
  }
  Block* block = CutAt(plan.target.first, plan.low);
  plan.region = block;
  while (block != nullptr && block->data < plan.high) {
    if (EndOf(*block) > plan.high) CutAt(block, plan.high);
    MakePending(block);
    block = block->next;
  }
}

void VirtualMemoryAllocator::Restore(Block* block) noexcept {
  blocks_.SetUsable(block, RangeOf(*block).pool);
  blocks_.AddMapped(block->size);
  taken_bytes_ += block->size;  // Until it is free.
  // Epochs may have restarted while the block was pending.
  InsertFree(block, std::min(block->offset_units, epochs_.current()));
}

void VirtualMemoryAllocator::MakeHole(Block* block) noexcept {
  blocks_.SetUnusable(block, BlockList::kHolePool);
  block->offset_units = FreeEpochs::kNone;
  BlockChain& holes = HolesOf(*block);
  if (Block* const previous = block->previous; BlockList::IsHole(previous)) {
    holes.Remove(previous);
    blocks_.CoalesceUnusable(previous, block, records_);
    block = previous;
  }
  if (Block* const next = block->next; BlockList::IsHole(next)) {
    holes.Remove(next);
    blocks_.CoalesceUnusable(block, next, records_);
  }
  holes.Insert(block);
  Refresh(block->previous);
  Refresh(block->next);
}

void VirtualMemoryAllocator::CommitMoves(GrowthPlan& plan) noexcept {
  bool is_current = false;
  for (const GrowthPiece& piece : plan.pieces) {
    if (piece.is_new()) continue;
    Block* const block = piece.from->block;
    if (vmm_.may_alias()) {
      Retire(block, piece.from->epoch);
      is_current = is_current || block->offset_units == epochs_.current();
    } else {
      RangeOf(*block).SetHandle(block->data, block->size, nullptr);
      MakeHole(block);
    }
  }
  if (SurplusLocked() != 0) requests_to_unmap_ = 1;
  if (is_current) CloseEpoch(*chain_stream().timeline());
}

Block* VirtualMemoryAllocator::CommitPlan(GrowthPlan& plan, Pool own) noexcept {
  // Past work may still use memory that was free here, or that moved.
  FreeEpochs::Epoch epoch = FreeEpochs::kNone;
  for (const GrowthPiece& piece : plan.pieces) {
    if (!piece.is_new()) epoch = std::max(epoch, piece.from->epoch);
  }
  CommitMoves(plan);
  Block* block = plan.region;
  while (EndOf(*block) < plan.high) {
    epoch = std::max({epoch, block->offset_units, block->next->offset_units});
    blocks_.CoalesceUnusable(block, block->next, records_);
  }
  epoch = std::min(std::max(epoch, block->offset_units), epochs_.current());
  blocks_.SetUsable(block, static_cast<std::uint8_t>(own));
  for (const GrowthPiece& piece : plan.pieces) {
    piece.handle->base = piece.at;
    plan.target.range->SetHandle(piece.at, piece.bytes, piece.handle);
    if (piece.is_new()) ++handle_count_;
  }
  blocks_.AddMapped(block->size);
  taken_bytes_ += block->size;
  moved_since_peak_ += plan.moved_bytes;
  if (plan.moved_bytes != 0) ++moves_since_peak_;
  if (has_lent() && VmmPolicy::IsSettled(held())) {
    created_while_lent_ += plan.new_bytes;
  }
  credit_bytes_ += vmm_.CreditFor(plan.moved_bytes);
  credit_bytes_ -=
      std::min(credit_bytes_, VmmPolicy::PriceOf(plan.new_bytes, held()));

  if (block->data < plan.target.begin) {
    Block* const rest = block;
    block = blocks_.Split(
        rest, static_cast<std::size_t>(plan.target.begin - rest->data),
        plan.spare.Pop());
    block->is_free = false;
    InsertFree(rest, epoch);
  }
  const auto size =
      static_cast<std::size_t>(plan.target.end - plan.target.begin);
  if (block->size - size >= kMinRemainderBytes) {
    InsertFree(blocks_.Split(block, size, plan.spare.Pop()), epoch);
  }
  block->is_free = false;
  block->flags = kBlockLive;
  block->offset_units = 0;
  ++takes_;
  Refresh(block->previous);
  Refresh(block->next);
  LimitCache();
  while (!plan.spare.empty()) records_.Push(plan.spare.Pop());
  records_.Shed();
  return block;
}

void VirtualMemoryAllocator::Retire(Block* block,
                                    FreeEpochs::Epoch epoch) noexcept {
  blocks_.SetUnusable(block, BlockList::kRetiredPool);
  // Epochs may have restarted meanwhile.
  block->offset_units = std::min(epoch, epochs_.current());
  retired_.Insert(block);
  ++retired_count_;
  Refresh(block->previous);
  Refresh(block->next);
}

void VirtualMemoryAllocator::Refuse(PageHandle* handle) noexcept {
  handle->base = nullptr;
  refused_bytes_ += handle->bytes;
  handle->next = std::exchange(refused_, handle);
}

std::size_t VirtualMemoryAllocator::UndoHole(Block* block,
                                             const GrowthPlan& plan,
                                             std::size_t first) noexcept {
  std::size_t after = first;
  bool is_mapped = false;
  for (std::byte* at = block->data; at < EndOf(*block); ++after) {
    at += plan.pieces[after].bytes;
    is_mapped = is_mapped || plan.pieces[after].is_mapped;
  }
  if (!is_mapped) {
    MakeHole(block);
    return after;
  }
  // Without records, the addresses stay pending and are leaked.
  if (!records_.Has(after - first)) return after;
  for (std::size_t i = first; i < after; ++i) {
    const GrowthPiece& piece = plan.pieces[i];
    Block* const rest = i + 1 < after ? blocks_.SplitUnusable(
                                            block, piece.bytes, records_.Pop())
                                      : nullptr;
    if (piece.is_mapped) {
      Retire(block, FreeEpochs::kNone);
    } else {
      MakeHole(block);
    }
    block = rest;
  }
  return after;
}

void VirtualMemoryAllocator::UndoHandle(const GrowthPiece& piece,
                                        AddressRange& range) noexcept {
  PageHandle* const handle = piece.handle;
  if (!piece.is_new()) {
    Block* const block = piece.from->block;
    if (piece.old == GrowthPiece::Old::kUsable) return Restore(block);
    if (piece.old == GrowthPiece::Old::kStuck) {
      refused_bytes_ += handle->bytes;
      return Retire(block, FreeEpochs::kNone);
    }
    RangeOf(*block).SetHandle(block->data, block->size, nullptr);
    MakeHole(block);
    --handle_count_;
  }
  if (handle == nullptr) return;
  if (!piece.is_mapped) return Refuse(handle);
  // The handle is mapped only at the planned addresses, and retires with them.
  handle->base = piece.at;
  range.SetHandle(piece.at, piece.bytes, handle);
  refused_bytes_ += handle->bytes;
  ++handle_count_;
}

void VirtualMemoryAllocator::UndoPlan(GrowthPlan& plan) noexcept {
  std::size_t i = 0;
  std::byte* at = plan.low;
  for (Block* block = plan.region; at < plan.high;) {
    at = EndOf(*block);
    Block* const next = block->next;
    // Pieces tile every hole of the plan, and no other block.
    if (i == plan.pieces.size() || plan.pieces[i].at != block->data) {
      Restore(block);
    } else {
      i = UndoHole(block, plan, i);
    }
    block = next;
  }
  for (const GrowthPiece& piece : plan.pieces) {
    UndoHandle(piece, *plan.target.range);
  }
  while (!plan.spare.empty()) records_.Push(plan.spare.Pop());
  LimitCache();
  records_.Shed();
}

}  // namespace strata
