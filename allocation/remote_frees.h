#ifndef STRATA_ALLOCATION_REMOTE_FREES_H_
#define STRATA_ALLOCATION_REMOTE_FREES_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "strata/allocation/allocation.h"
#include "strata/platform/biased_lock.h"

namespace strata {

// Takes back blocks that were left among RemoteFrees.
class FreeTaker {
 public:
  FreeTaker() = default;
  FreeTaker(const FreeTaker&) = delete;
  FreeTaker& operator=(const FreeTaker&) = delete;

  // Frees `blocks`, of which the first was left first. The chain's lock is
  // held.
  virtual void TakeIn(std::span<Block* const> blocks) noexcept = 0;

 protected:
  ~FreeTaker() = default;
};

// Blocks that threads freed without the lock of their chain, for who has it.
//
// Model: a ring of pointers, first in, first out. Who leaves a block has a lock
//   that only such threads take, and which one of them soon owns if it may; who
//   takes them out has the chain's. Neither writes a cache line that the other
//   one writes with each block, but for the blocks' own: so one that is freed
//   by the thread of a data loader changes cores twice, and nothing else does.
//   Closed at first: then nothing can be left here.
// Threads: Leave: any thread. Who has left a block must not touch this again,
//   as its chain may be gone with the last free; Close waits for who is in
//   Leave. The rest: who has the chain's lock.
// Cost: to leave a block: the lock, no atomic operation for its owner. 768
//   bytes.
// Source: hotpath.md §5, §7 (pointer magazines), of the stream in place of the
//   thread: what lay there would be nobody's.
class RemoteFrees {
 public:
  static constexpr std::size_t kMost = 64;

  // For `taker`, which outlives this. Whether a thread may own the lock of
  // those who leave blocks.
  RemoteFrees(FreeTaker& taker, bool may_bias)
      : leaving_(may_bias), taker_(taker) {}
  RemoteFrees(const RemoteFrees&) = delete;
  RemoteFrees& operator=(const RemoteFrees&) = delete;

  // Leaves `block`, which is live; false, and nothing is done, if it is closed,
  // or kMost are here. On success the block counts as freed, and may be gone.
  bool Leave(Block& block) noexcept;

  void Open() noexcept;
  // Nothing is left from now on. What was left before stays.
  void Close() noexcept;
  // Has the taker take in what every free has left that ended before.
  void TakeIn() noexcept;
  // Whether there is anything. Also without the lock: then others may come and
  // go.
  bool any() const noexcept {
    return left_.load(std::memory_order_acquire) !=
           taken_.load(std::memory_order_relaxed);
  }

 private:
  // Counts of blocks, from the beginning on; they wrap around.
  using Count = std::uint8_t;
  static Count Between(Count first, Count last) {
    return static_cast<Count>(last - first);
  }
  // So places stay the same where they wrap.
  static_assert(256 % kMost == 0 && kMost < 256);

  // Two cache lines each, as processors fetch them in pairs. Of who leaves:
  alignas(128) BiasedLock leaving_;
  bool is_open_ = false;        // guarded by leaving_
  Count seen_taken_ = 0;        // likewise
  std::atomic<Count> left_{0};  // written with leaving_
  // Those of left_, but not of taken_.
  alignas(128) std::array<Block*, kMost> blocks_{};
  // Of who takes in:
  alignas(128) std::atomic<Count> taken_{0};
  FreeTaker& taker_;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_REMOTE_FREES_H_
