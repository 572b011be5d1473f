#include "strata/allocation/hit/remote_frees.h"

#include <mutex>

#include "strata/allocation/block_flags.h"

namespace strata {

bool RemoteFrees::Leave(Block& block) noexcept {
  const std::lock_guard<SpinLock> guard(leaving_);
  if (!is_open_) return false;
  const Count left = left_.load(std::memory_order_relaxed);
  if (Between(seen_taken_, left) == kMost) {
    seen_taken_ = taken_.load(std::memory_order_acquire);
    if (Between(seen_taken_, left) == kMost) return false;
  }
  // From here on the block counts as freed, so that a double free is detected.
  SetFlags(block, 0);
  blocks_[left % kMost] = &block;
  left_.store(static_cast<Count>(left + 1), std::memory_order_release);
  return true;
}

void RemoteFrees::Open() noexcept {
  const std::lock_guard<SpinLock> guard(leaving_);
  is_open_ = true;
}

void RemoteFrees::Close() noexcept {
  const std::lock_guard<SpinLock> guard(leaving_);
  is_open_ = false;
}

void RemoteFrees::TakeIn() noexcept {
  const Count left = left_.load(std::memory_order_acquire);
  const Count taken = taken_.load(std::memory_order_relaxed);
  if (left == taken) return;
  // Copies the blocks first: other threads may reuse the slots as soon as
  // taken_ advances.
  std::array<Block*, kMost> blocks;
  const Count count = Between(taken, left);
  for (Count i = 0; i != count; ++i) blocks[i] = blocks_[(taken + i) % kMost];
  taken_.store(left, std::memory_order_release);
  FreeLeft(std::span(blocks.data(), count));
}

}  // namespace strata
