// Reports of BfcAllocator.

#include <algorithm>
#include <mutex>
#include <vector>

#include "strata/base/list_under_lock.h"
#include "strata/strategy/bfc/bfc_allocator.h"

namespace strata {
namespace {

// The note of a live allocation.
const BfcNote& LiveNote(const Allocation& allocation) {
  const Block* block = allocation.block();
  CheckLive(*block, "bfc");
  return NoteOf(block);
}

// Releases the annotations also if copying their texts throws.
struct HeldAnnotations {
  HeldAnnotations() = default;
  HeldAnnotations(const HeldAnnotations&) = delete;
  HeldAnnotations& operator=(const HeldAnnotations&) = delete;
  ~HeldAnnotations() {
    std::for_each(list.begin(), list.end(), &BfcAnnotation::LetGo);
  }

  std::vector<const BfcAnnotation*> list;
};

}  // namespace

std::size_t BfcAllocator::RequestedSize(const Allocation& allocation) {
  return LiveNote(allocation).requested_bytes;
}

std::size_t BfcAllocator::AllocatedSize(const Allocation& allocation) {
  CheckLive(*allocation.block(), "bfc");
  return allocation.block()->size;
}

std::int64_t BfcAllocator::AllocationId(const Allocation& allocation) {
  return LiveNote(allocation).allocation_id;
}

Stats BfcAllocator::stats() const {
  const auto joined = LockJoined();
  Stats stats = arena_.stats();
  stats.failures = failures_;
  stats.cache_hits = stats.allocations - met_late_;
  stats.cache_misses = met_late_ + failures_;
  if (knows_limit_ && !limit_is_all_) {
    LimitReserved(stats, plan_.limit_bytes(), limit_flag());
  }
  return stats;
}

void BfcAllocator::ResetPeak() {
  {
    const std::lock_guard<SpinLock> guard(lock_);
    arena_.ResetPeak();
  }
  pool().ResetPeak();
}

BfcSnapshot::Numbers BfcAllocator::GetNumbers() const {
  const auto joined = LockJoined();
  BfcSnapshot::Numbers numbers = arena_.numbers();
  numbers.bytes_limit = plan_.limit_bytes();
  return numbers;
}

void BfcAllocator::ClearStats() {
  const std::lock_guard<SpinLock> guard(lock_);
  arena_.ClearNumbers();
}

void BfcAllocator::AppendBlocks(std::vector<BlockInfo>& blocks) const {
  const std::size_t before = blocks.size();
  ListUnderLock(
      lock_, [this] { return arena_.block_count(); },
      [&](std::size_t count) { blocks.reserve(before + count); },
      [&] {
        arena_.JoinAll();
        arena_.Describe(blocks);
      });
}

BfcSnapshot BfcAllocator::Snapshot() const {
  BfcSnapshot snapshot;
  snapshot.allocator_name = name();
  snapshot.place = place();
  if (options_.keep_annotations) {
    snapshot.size_history.reserve(BfcArena::kHistory);
  }
  HeldAnnotations held;
  std::vector<const BfcAnnotation*>& annotations = held.list;
  ListUnderLock(
      lock_, [this] { return arena_.block_count(); },
      [&](std::size_t count) {
        snapshot.regions.reserve(count);
        snapshot.chunks.reserve(count);
        annotations.reserve(count);
      },
      [&] {
        arena_.JoinAll();
        arena_.Describe(snapshot, annotations);
        arena_.Describe(snapshot.size_history);
        snapshot.numbers.bytes_limit = plan_.limit_bytes();
        snapshot.memory_limit_bytes = plan_.limit_bytes();
        snapshot.growth_hint_bytes = plan_.hint_bytes();
      });
  for (std::size_t i = 0; i < annotations.size(); ++i) {
    if (annotations[i] == nullptr) continue;
    snapshot.chunks[i].annotation = annotations[i]->text;
    snapshot.chunks[i].op_name = annotations[i]->op;
    snapshot.chunks[i].step_id = annotations[i]->step;
  }
  return snapshot;
}

bool BfcAllocator::IsConsistent() const {
  const std::lock_guard<SpinLock> guard(lock_);
  return arena_.IsConsistent();
}

std::size_t BfcAllocator::waiting_count() const {
  const std::lock_guard<SpinLock> guard(lock_);
  return arena_.waiting_count();
}

}  // namespace strata
