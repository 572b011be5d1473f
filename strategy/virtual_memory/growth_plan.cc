#include "strata/strategy/virtual_memory/growth_plan.h"

#include <algorithm>

#include "strata/strategy/blocks/block_list.h"
#include "strata/strategy/virtual_memory/address_range.h"

namespace strata {
namespace {

using vmm::EndOf;
using vmm::IsInRun;
using vmm::RangeOf;
using vmm::WholePages;

// The end of the mappable addresses of `block`.
std::byte* MapEndOf(const Block& block) {
  return std::min(EndOf(block), RangeOf(block).map_end());
}

// A run: its lowest block, and the end of its usable addresses.
struct Run {
  Block* first = nullptr;
  std::byte* end = nullptr;
  bool is_tail = false;
};

// The run of `hole`; without a first block if the run has a lower hole.
Run RunOf(Block* hole) {
  Run run;
  run.first = hole;
  for (Block* block = hole->previous; IsInRun(block); block = block->previous) {
    if (BlockList::IsHole(block)) return Run();
    run.first = block;
  }
  const Block* last = hole;
  while (IsInRun(last->next)) last = last->next;
  run.end = MapEndOf(*last);
  run.is_tail = last->next == nullptr;
  return run;
}

// Bytes to map, in whole pages, for a block from `begin` to `end`.
std::size_t MissingBytes(const Run& run, std::byte* begin, std::byte* end) {
  std::size_t missing = 0;
  for (const Block* block = run.first; block != nullptr && block->data < end;
       block = block->next) {
    if (!BlockList::IsHole(block) || EndOf(*block) <= begin) continue;
    const AddressRange& range = RangeOf(*block);
    std::byte* const from = range.PageDown(std::max(begin, block->data));
    std::byte* const to = range.PageUp(std::min(end, EndOf(*block)));
    missing += static_cast<std::size_t>(to - from);
  }
  return missing;
}

bool IsBetter(const GrowthTarget& a, const GrowthTarget& b) {
  if (a.missing_bytes != b.missing_bytes) {
    return a.missing_bytes < b.missing_bytes;
  }
  if (a.run_bytes != b.run_bytes) return a.run_bytes < b.run_bytes;
  return a.begin < b.begin;
}

// The best place for a block of `size` bytes in `run`.
GrowthTarget TargetIn(const Run& run, std::size_t size) {
  GrowthTarget best;
  const auto consider = [&](std::byte* begin) {
    if (begin < run.first->data || begin > run.end ||
        static_cast<std::size_t>(run.end - begin) < size) {
      return;
    }
    GrowthTarget target;
    target.range = &RangeOf(*run.first);
    target.first = run.first;
    target.begin = begin;
    target.end = begin + size;
    target.missing_bytes = MissingBytes(run, begin, target.end);
    target.run_bytes =
        run.is_tail ? SIZE_MAX
                    : static_cast<std::size_t>(run.end - run.first->data);
    if (best.range == nullptr || IsBetter(target, best)) best = target;
  };
  for (const Block* block = run.first; IsInRun(block); block = block->next) {
    consider(block->data);
    if (block->is_free && size > block->size) consider(EndOf(*block) - size);
  }
  return best;
}

// Fills one hole of the target.
class HoleFill {
 public:
  HoleFill(const GrowthMeans& means, GrowthPlan& plan, const Block& hole);
  // False as ChoosePieces.
  bool Run();

 private:
  std::size_t missing() const { return static_cast<std::size_t>(to_ - at_); }
  bool Move();
  bool Create();
  // Null: a handle is created.
  bool Add(FreeHandle* from, std::size_t bytes);

  const GrowthMeans& means_;
  GrowthPlan& plan_;
  std::byte* at_;         // the first address that is not yet filled
  std::byte* to_;         // the end of the addresses to fill
  std::byte* const end_;  // End of the hole.
  const bool is_tail_;
};

HoleFill::HoleFill(const GrowthMeans& means, GrowthPlan& plan,
                   const Block& hole)
    : means_(means),
      plan_(plan),
      at_(plan.target.range->PageDown(std::max(plan.target.begin, hole.data))),
      to_(plan.target.range->PageUp(std::min(plan.target.end, EndOf(hole)))),
      end_(MapEndOf(hole)),
      is_tail_(hole.next == nullptr) {}

bool HoleFill::Add(FreeHandle* from, std::size_t bytes) {
  if (plan_.pieces.size() == plan_.pieces.capacity()) {
    plan_.lacks_host_memory = true;
    return false;
  }
  GrowthPiece piece;
  piece.at = at_;
  piece.bytes = bytes;
  piece.from = from;
  if (from != nullptr) piece.handle = from->handle;
  plan_.pieces.push_back(piece);
  (piece.is_new() ? plan_.new_bytes : plan_.moved_bytes) += bytes;
  at_ += bytes;
  to_ = std::max(to_, at_);
  return true;
}

bool HoleFill::Move() {
  FreeHandle* const free = plan_.free_handles.Choose(
      missing(), static_cast<std::size_t>(end_ - at_));
  return free != nullptr && Add(free, free->handle->bytes);
}

bool HoleFill::Create() {
  const std::size_t budget =
      means_.budget_bytes - std::min(means_.budget_bytes, plan_.new_bytes);
  const std::size_t bytes =
      std::min({means_.handle_bytes, missing(), WholePages(budget)});
  return bytes != 0 && Add(nullptr, bytes);
}

bool HoleFill::Run() {
  const std::size_t moved_before = plan_.moved_bytes;
  while (at_ < to_) {
    if (means_.prefer_free ? Move() || Create() : Create() || Move()) continue;
    plan_.short_bytes += missing();
    return false;
  }
  // If only new memory was mapped, the tail grows up to the quantum.
  if (!is_tail_ || plan_.moved_bytes != moved_before) return true;
  if (plan_.new_bytes >= means_.quantum_bytes) return true;
  const std::size_t more = std::min(means_.quantum_bytes - plan_.new_bytes,
                                    static_cast<std::size_t>(end_ - at_));
  to_ = at_ + WholePages(more);
  while (at_ < to_ && Create()) {
  }
  return true;
}

}  // namespace

void GrowthPlan::Clear() {
  target = GrowthTarget();
  free_handles.Clear();
  pieces.clear();
  new_bytes = 0;
  moved_bytes = 0;
  short_bytes = 0;
  low = nullptr;
  high = nullptr;
  region = nullptr;
  records = 0;
  lacks_host_memory = false;
}

GrowthTarget FindGrowthTarget(const BlockChain& holes, std::size_t size,
                              bool only_tails) {
  GrowthTarget best;
  for (Block* hole = holes.first(); hole != nullptr; hole = hole->free_next) {
    const Run run = RunOf(hole);
    if (run.first == nullptr || (only_tails && !run.is_tail)) continue;
    if (run.end < run.first->data + size) continue;
    const GrowthTarget target = TargetIn(run, size);
    if (target.range == nullptr) continue;
    if (best.range == nullptr || IsBetter(target, best)) best = target;
  }
  return best;
}

bool ChoosePieces(const GrowthMeans& means, GrowthPlan& plan) {
  const GrowthTarget& target = plan.target;
  for (const Block* block = target.first;
       block != nullptr && block->data < target.end; block = block->next) {
    if (!BlockList::IsHole(block) || EndOf(*block) <= target.begin) continue;
    // After a hole that is short, the others tell how much is short in all.
    if (!HoleFill(means, plan, *block).Run() && plan.lacks_host_memory) {
      return false;
    }
  }
  if (plan.short_bytes != 0) return false;
  plan.low = std::min(target.begin, plan.pieces.front().at);
  plan.high =
      std::max(target.end, plan.pieces.back().at + plan.pieces.back().bytes);
  return true;
}

}  // namespace strata
