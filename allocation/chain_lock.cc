#include "strata/allocation/chain_lock.h"

#include "strata/allocation/block_flags.h"

namespace strata {

bool ChainLock::Leave(Block& block) noexcept {
  std::uintptr_t last = waiting_.load(std::memory_order_relaxed);
  if ((last & kCountMask) >= kMostWaiting) return false;
  Allocator* const owner = block.owner;
  // From here on it counts as freed: who frees it once more is found out.
  SetFlags(block, 0);
  do {
    if ((last & kCountMask) >= kMostWaiting) {
      block.owner = owner;
      SetFlags(block, kBlockLive);
      return false;
    }
    block.free_previous = BlockOf(last);
  } while (!waiting_.compare_exchange_weak(
      last,
      reinterpret_cast<std::uintptr_t>(&block) | (last & kOwnBit) |
          ((last & kCountMask) + 1),
      std::memory_order_release, std::memory_order_relaxed));
  return true;
}

[[gnu::noinline]] void ChainLock::TakeInSlowly() noexcept {
  if (!has_waiting()) {
    // It can have no owner any more.
    if (own_bit() == 0) {
      waiting_.fetch_and(~kOwnBit, std::memory_order_relaxed);
    }
    return;
  }
  const std::uintptr_t last =
      waiting_.exchange(own_bit(), std::memory_order_acquire);
  taker_->TakeIn(BlockOf(last));
}

void ChainLock::Open(FreeTaker& taker) noexcept {
  if (is_open()) return;
  taker_ = &taker;
  waiting_.store(own_bit(), std::memory_order_relaxed);
}

bool ChainLock::Close() noexcept {
  const std::uintptr_t last =
      waiting_.exchange(kClosed | own_bit(), std::memory_order_acquire);
  if ((last & ~kOwnBit) == kClosed) return false;
  if (Block* first = BlockOf(last)) taker_->TakeIn(first);
  return true;
}

}  // namespace strata
