// Restores the lists of VirtualMemoryAllocator after a failed growth.

#include <algorithm>
#include <utility>

#include "strata/strategy/virtual_memory/virtual_memory_allocator.h"

namespace strata {

using vmm::EndOf;
using vmm::RangeOf;

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
