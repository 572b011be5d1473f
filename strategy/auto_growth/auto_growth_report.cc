// Statistics, the list of blocks, and checks.

#include <algorithm>

#include "strata/base/list_under_lock.h"
#include "strata/strategy/auto_growth/auto_growth_allocator.h"

namespace strata {

std::size_t AutoGrowthAllocator::LargestFree() const noexcept {
  std::size_t largest = 0;
  for (const FreeIndex& blocks : index_) {
    largest = std::max(largest, blocks.LargestBytes());
  }
  for (const OpenBlocks& blocks : open_) {
    blocks.ForEach(
        [&](const Block& block) { largest = std::max(largest, block.size); });
  }
  return largest;
}

Stats AutoGrowthAllocator::stats() const {
  const auto joined = LockJoined();
  return StatsLocked();
}

Stats AutoGrowthAllocator::StatsLocked() const {
  Stats stats;
  stats.cache_hits = takes_ - untold_takes_ + cache_.hits();
  stats.cache_misses = misses_;
  stats.splits = blocks_.splits();
  stats.coalesces = blocks_.coalesces();
  // The borrower counts the bytes that are lent.
  stats.reserved_bytes = blocks_.chunk_bytes() - lent_bytes_;
  stats.in_use_bytes = taken_bytes_ - lent_bytes_;
  stats.free_blocks = free_blocks();
  stats.largest_free_bytes = LargestFree();
  stats.chunks = blocks_.chunk_count();
  stats.idle_bytes = idle_.bytes();
  return stats;
}

void AutoGrowthAllocator::AppendBlocks(std::vector<BlockInfo>& blocks) const {
  const std::size_t before = blocks.size();
  ListUnderLock(
      lock_,
      [this] {
        JoinAll();
        return blocks_.block_count();
      },
      [&](std::size_t count) { blocks.reserve(before + count); },
      [&] {
        JoinAll();
        blocks_.Describe(blocks);
      });
}

bool AutoGrowthAllocator::IsConsistent() const {
  const auto joined = LockJoined();
  FreeIndex::Totals free;
  for (const FreeIndex& blocks : index_) {
    const FreeIndex::Totals totals = blocks.Count();
    free.blocks += totals.blocks;
    free.bytes += totals.bytes;
    if (!blocks.IsConsistent()) return false;
  }
  for (const OpenBlocks& blocks : open_) {
    blocks.ForEach([&](const Block& block) {
      ++free.blocks;
      free.bytes += block.size;
    });
  }
  return free.blocks == free_blocks() &&
         free.bytes + taken_bytes_ == blocks_.chunk_bytes() &&
         cache_.IsConsistent() && idle_.IsConsistent() &&
         idle_loans_.IsConsistent() && blocks_.IsConsistent();
}

}  // namespace strata
