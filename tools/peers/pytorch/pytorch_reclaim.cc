// The part of PytorchPeer that releases idle segments.

#include <algorithm>
#include <iterator>

#include "strata/tools/peers/pytorch/pytorch_peer.h"

namespace strata::peers {

void PytorchPeer::ReleaseIdle() {
  ReleaseIdle(large_);
  ReleaseIdle(small_);
}

void PytorchPeer::ReleaseIdle(Pool& pool) {
  std::vector<Block*> expandable;
  for (auto at = pool.free.begin(); at != pool.free.end();) {
    Block* block = *at;
    ++at;
    if (block->segment != nullptr) {
      expandable.push_back(block);
    } else if (!block->IsSplit()) {
      ReleasePlainSegment(block);
    }
  }
  for (Block* block : expandable) {
    UnmapBlock(block);
    if (!block->IsSplit()) ReleaseExpandableSegment(block);
  }
}

bool PytorchPeer::ReleaseOversize(Pool& pool, std::size_t bytes,
                                  const Stream& stream) {
  if (settings_.max_split_bytes == PytorchSettings::kUnlimited) return false;
  Block key;
  key.stream = stream;
  key.bytes = std::max(bytes, settings_.max_split_bytes);
  auto at = pool.free.lower_bound(&key);
  if (at != pool.free.end() && (*at)->stream == stream) {
    if (!IsIdleSegment(**at)) return false;
    ReleasePlainSegment(*at);
    return true;
  }
  // No block is large enough alone: several, the largest first.
  std::size_t released_bytes = 0;
  while (released_bytes < key.bytes && at != pool.free.begin()) {
    const auto before = std::prev(at);
    Block* block = *before;
    if (block->stream != stream || block->bytes < settings_.max_split_bytes) {
      break;
    }
    if (IsIdleSegment(*block)) {
      released_bytes += block->bytes;
      ReleasePlainSegment(block);
    } else {
      at = before;
    }
  }
  return released_bytes >= key.bytes;
}

void PytorchPeer::CollectGarbage() {
  const auto threshold_bytes = static_cast<std::size_t>(
      settings_.garbage_collection_threshold * static_cast<double>(cap_bytes_));
  if (reserved_bytes() <= threshold_bytes) return;
  const std::size_t target_bytes = reserved_bytes() - threshold_bytes;
  std::uint64_t total_age = 0;
  std::uint64_t count = 0;
  for (const Block* block : large_.free) {
    if (block->IsSplit()) continue;
    total_age += AgeOf(*block);
    ++count;
  }
  std::size_t reclaimed_bytes = 0;
  bool has_freed = true;
  while (has_freed && reclaimed_bytes < target_bytes && count > 0) {
    // Release all blocks as old as the mean, even after the target is reached:
    // this delays the next collection.
    const double least_age =
        static_cast<double>(total_age) / static_cast<double>(count);
    has_freed = false;
    for (auto at = large_.free.begin(); at != large_.free.end();) {
      Block* block = *at;
      ++at;
      if (!IsIdleSegment(*block) ||
          static_cast<double>(AgeOf(*block)) < least_age) {
        continue;
      }
      has_freed = true;
      reclaimed_bytes += block->bytes;
      total_age -= AgeOf(*block);
      --count;
      ReleasePlainSegment(block);
    }
  }
}

void PytorchPeer::ReleasePlainSegment(Block* block) {
  RequireSuccess(device_.MemFree(block->address), DeviceCall::kMemFree);
  plain_segments_.erase(block->address);
  stats_.GivenBack(block->pool->stats_pool(), block->bytes);
  block->pool->free.erase(block);
  delete block;
}

}  // namespace strata::peers
