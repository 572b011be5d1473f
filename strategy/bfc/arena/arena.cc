#include "strata/strategy/bfc/arena/arena.h"

#include <utility>

#include "strata/base/size.h"
#include "strata/strategy/blocks/block_list.h"

namespace strata {
namespace {

// Bytes to skip at the start of `block`.
std::size_t Padding(const Block* block, std::size_t alignment) {
  const auto address = reinterpret_cast<std::uintptr_t>(block->data);
  return AlignUp(address, alignment) - address;
}

// Whether a block of at least the size also has room for the alignment.
bool HasRoom(const Block* block, const BfcAsk& ask) {
  return block->size - ask.rounded >= Padding(block, ask.alignment);
}

}  // namespace

BfcArena::BfcArena(const BfcArenaRules& rules)
    : rules_(rules),
      most_waste_bytes_(Mebibytes(128)),
      lower_(rules_.placement, rules_.lower.hole_order),
      cache_(rules_.front_cache ? rules_.front_cache->max_block_bytes() : 0,
             kBfcGranuleBytes,
             rules_.front_cache ? rules_.front_cache->searches() : 0) {
  if (rules_.has_two_ends) {
    upper_ =
        std::make_unique<BfcIndex>(rules_.placement, rules_.upper.hole_order);
  }
  if (rules_.keep_annotations) history_.resize(kHistory);
}

inline Block* BfcArena::TakeHole(const BfcAsk& ask) {  // R8
  BfcIndex& holes = ask.end == BfcEnd::kUpper ? *upper_ : lower_;
  if (IsPlain(ask)) return holes.Take(ask.rounded);
  return holes.TakeIf(
      ask.rounded, ask.rounded + ask.alignment - kBfcGranuleBytes,
      [&ask](const Block* block) {
        return HasRoom(block, ask) &&
               (ask.freed_before == 0 ||
                NoteOf(block).freed_at <= ask.freed_before);  // R9
      });
}

inline Block* BfcArena::FindAndCarve(const BfcAsk& ask) noexcept {
  Block* const block = TakeHole(ask);
  if (block != nullptr) {
    return ask.end == BfcEnd::kUpper ? CarveHigh(block, ask)
                                     : Carve(block, ask);
  }
  return gap_ != nullptr ? TakeFromGap(ask) : nullptr;
}

Block* BfcArena::Search(const BfcAsk& ask) noexcept {
  if (!records_.Has(kRecordsPerTake)) return nullptr;
  if (cache_.is_sweep_due()) Join(cache_.TakeStale());
  Block* block = FindAndCarve(ask);
  if (block == nullptr && !cache_.empty()) {
    JoinAll();
    block = FindAndCarve(ask);
  }
  if (block == nullptr) return nullptr;
  // A block that was not split is cached by its own size, which no request has.
  if (block->size == ask.rounded) cache_.NoteSearch(ask.rounded);
  if (NoteOf(block).freed_at != 0) {
    waiting_.Remove(block);
    NoteOf(block).freed_at = 0;
  }
  return block;
}

Block* BfcArena::Carve(Block* block, const BfcAsk& ask) noexcept {
  if (const std::size_t padding = Padding(block, ask.alignment)) {  // R13
    Block* aligned = Split(block, padding);
    InsertFree(block);
    block = aligned;
  }
  if (IsSplit(block->size, ask)) {  // R11
    InsertFree(Split(block, ask.rounded));
    ++stats_.splits;
  }
  return block;
}

Block* BfcArena::Split(Block* block, std::size_t low_bytes) noexcept {
  Block* rest = BfcRegions::Split(block, low_bytes, records_.Pop());
  ++block_count_;
  const BfcNote& note = NoteOf(block);
  NoteOf(rest).freed_at = note.freed_at;
  NoteOf(rest).action = note.action;
  NoteOf(rest).end = note.end;
  if (note.freed_at != 0) waiting_.InsertAfter(block, rest);
  return rest;
}

const BfcAnnotation* BfcArena::Give(Block* block) noexcept {  // R29
  BfcNote& note = NoteOf(block);
  // Coalesce reads them; with many blocks they are not in a near cache.
  __builtin_prefetch(block->next);
  __builtin_prefetch(block->previous);
  ++stats_.frees;
  stats_.requested_bytes -= note.requested_bytes;
  numbers_.bytes_in_use -= block->size;
  --RegionOf(block).live_blocks;
  CountAction(block);

  const BfcAnnotation* annotation = std::exchange(note.annotation, nullptr);
  note.allocation_id = -1;
  note.requested_bytes = 0;
  block->flags = 0;
  if (rules_.counter != nullptr) {
    note.freed_at = rules_.counter->Next();
    waiting_.Append(block);
  } else if (cache_.Give(block)) {
    return annotation;
  } else {
    block = Coalesce(block, /*ignores_stamps=*/false);
  }
  InsertFree(block);
  records_.Shed();
  return annotation;
}

void BfcArena::Join(Block* cached) noexcept {
  while (cached != nullptr) {
    Block* const rest = cached->free_next;
    InsertFree(Coalesce(cached, /*ignores_stamps=*/false));
    cached = rest;
  }
  records_.Shed();
}

void BfcArena::LimitCache() noexcept {
  if (!rules_.front_cache) return;
  cache_.set_limit_bytes(rules_.front_cache->LimitBytes(regions_.bytes()));
}

void BfcArena::JoinStamps(Block* left, Block* right) noexcept {
  BfcNote& note = NoteOf(left);
  const BfcNote& other = NoteOf(right);
  if (other.freed_at > note.freed_at) {
    if (note.freed_at != 0) waiting_.Remove(left);
    note.freed_at = other.freed_at;
    waiting_.Replace(right, left);
  } else if (other.freed_at != 0) {
    waiting_.Remove(right);
  }
}

inline void BfcArena::Join(Block* left, Block* right) noexcept {
  BfcNote& note = NoteOf(left);
  const BfcNote& other = NoteOf(right);
  if ((note.freed_at | other.freed_at) != 0) JoinStamps(left, right);
  note.action = std::max(note.action, other.action);
  if (note.end != other.end) note.end = BfcEnd::kGap;
  JoinBlocks(left, right, records_);
  --block_count_;
  ++stats_.coalesces;
}

Block* BfcArena::Coalesce(Block* block, bool ignores_stamps) noexcept {  // R30
  BfcNote& note = NoteOf(block);
  const bool is_safe = note.freed_at == 0;
  if (!is_safe && !ignores_stamps) return block;
  if (rules_.has_two_ends && is_safe && IsInnermost(block)) {  // R68
    note.end = BfcEnd::kGap;
  }
  // A block belongs to its end until it is safe.
  const auto may_join = [&](const Block* other) {
    return other != nullptr && other->is_free &&
           (ignores_stamps || NoteOf(other).freed_at == 0) &&
           (is_safe || NoteOf(other).end == note.end);
  };
  if (Block* next = block->next; may_join(next)) {
    RemoveFree(next);
    Join(block, next);
  }
  Block* previous = block->previous;
  if (!may_join(previous)) return block;
  RemoveFree(previous);
  Join(previous, block);
  return previous;
}

void BfcArena::MergeSafe(std::uint64_t frontier) noexcept {
  while (Block* block = waiting_.first()) {
    BfcNote& note = NoteOf(block);
    if (note.freed_at >= frontier) return;
    waiting_.Remove(block);
    note.freed_at = 0;
    RemoveFree(block);
    InsertFree(Coalesce(block, /*ignores_stamps=*/false));
  }
}

bool BfcArena::MergeUnsafe(const BfcAsk& ask) noexcept {
  waiting_.StartWalk();
  while (Block* block = waiting_.Step()) {
    RemoveFree(block);
    block = Coalesce(block, /*ignores_stamps=*/true);
    InsertFree(block);
    if (NoteOf(block).end == ask.end && block->size >= ask.rounded &&
        HasRoom(block, ask)) {
      return true;
    }
  }
  return false;
}

BfcRegion* BfcArena::AddRegion(BfcRegion* region) noexcept {  // R21, R24
  Block* block = records_.Pop();
  BfcRegion* joined = nullptr;
  BfcRegion* before = rules_.coalesce_regions
                          ? regions_.EndingAt(region->memory->block()->data)
                          : nullptr;
  regions_.Add(region, block);
  if (before != nullptr) {
    regions_.Remove(region);
    regions_.Append(before, region);
    joined = region;
  }
  ++block_count_;
  NoteOf(block).action = ++actions_;
  if (rules_.has_two_ends) NoteOf(block).end = BfcEnd::kGap;  // R63
  InsertFree(Coalesce(block, /*ignores_stamps=*/false));
  numbers_.peak_pool_bytes =
      std::max(numbers_.peak_pool_bytes, regions_.bytes());
  LimitCache();
  return joined;
}

bool BfcArena::IsIdle(const BfcRegion& region, std::uint64_t frontier) const {
  if (region.live_blocks != 0) return false;
  if (waiting_.empty()) return true;
  const Block* block = region.first;
  while (block != nullptr &&
         (NoteOf(block).freed_at == 0 || NoteOf(block).freed_at < frontier)) {
    block = block->next;
  }
  return block == nullptr;
}

void BfcArena::RemoveRegion(BfcRegion* region) noexcept {
  regions_.Remove(region);
  for (Block* block = region->first; block != nullptr;) {
    Block* next = block->next;
    if (NoteOf(block).freed_at != 0) waiting_.Remove(block);
    RemoveFree(block);
    *block = Block();
    records_.Push(block);
    --block_count_;
    block = next;
  }
  region->first = nullptr;
  ++actions_;
  LimitCache();
  records_.Shed();
}

}  // namespace strata
