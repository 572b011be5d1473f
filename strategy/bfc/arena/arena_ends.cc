// Two ends: tf_bfc.md R63 to R69.

#include "strata/strategy/bfc/arena/arena.h"

namespace strata {
namespace {

std::uintptr_t AddressOf(const Block* block) {
  return reinterpret_cast<std::uintptr_t>(block->data);
}

// Offset in `block` of a request that is served from its high end. The block is
// large enough.
std::size_t HighOffset(const Block* block, const BfcAsk& ask) {
  const std::uintptr_t highest = AddressOf(block) + block->size - ask.rounded;
  return (highest & ~(ask.alignment - 1)) - AddressOf(block);
}

}  // namespace

bool BfcArena::IsInnermost(const Block* block) {
  const BfcEnd end = NoteOf(block).end;
  if (end == BfcEnd::kGap) return false;
  const Block* inner = end == BfcEnd::kLower ? block->next : block->previous;
  return inner == nullptr || NoteOf(inner).end != end;
}

Block* BfcArena::CarveHigh(Block* block, const BfcAsk& ask) noexcept {  // R67
  const std::uintptr_t aligned = AlignUp(AddressOf(block), ask.alignment);
  const std::size_t behind = AddressOf(block) + block->size - aligned;
  if (!IsSplit(behind, ask)) return Carve(block, ask);
  if (const std::size_t low_bytes = HighOffset(block, ask); low_bytes != 0) {
    Block* high = Split(block, low_bytes);
    InsertFree(block);
    block = high;
  }
  // The rest that alignment leaves after the request, unless it is small.
  if (IsSplit(block->size, ask)) InsertFree(Split(block, ask.rounded));
  ++stats_.splits;
  return block;
}

// The gap is always safe.
Block* BfcArena::TakeFromGap(const BfcAsk& ask) noexcept {  // R65
  Block* block = gap_;
  const std::uintptr_t aligned = AlignUp(AddressOf(block), ask.alignment);
  if (aligned - AddressOf(block) + ask.rounded > block->size) return nullptr;
  const bool from_above = ask.end == BfcEnd::kUpper;
  const std::size_t low_bytes =
      from_above ? HighOffset(block, ask) : aligned - AddressOf(block);
  RemoveFree(block);
  // The rest on the far side is the gap. The rest on the near side, due to
  // alignment, is a hole of this end.
  const auto leave = [&](Block* rest, bool is_gap) {
    NoteOf(rest).end = is_gap ? BfcEnd::kGap : ask.end;
    InsertFree(rest);
  };
  if (low_bytes != 0) {
    Block* high = Split(block, low_bytes);
    leave(block, from_above);
    block = high;
  }
  if (block->size > ask.rounded) {
    leave(Split(block, ask.rounded), !from_above);
  }
  NoteOf(block).end = ask.end;
  ++stats_.splits;
  return block;
}

}  // namespace strata
