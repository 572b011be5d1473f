#ifndef STRATA_ALLOCATION_HIT_REMOTE_FREES_H_
#define STRATA_ALLOCATION_HIT_REMOTE_FREES_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "strata/allocation/allocation.h"
#include "strata/platform/locks/spin_lock.h"

namespace strata {

// A queue of blocks that threads freed without the lock of their chain. The
// holder of the lock takes them in.
//
// Model: a FIFO ring of pointers. Threads that leave blocks share a lock. No
//   thread owns it: Open() and Close() acquire it with the lock of the chain
//   held, and must not remove an owner there. The thread that takes blocks in
//   holds the lock of the chain. Neither side writes a cache line that the
//   other side writes for each block, except the line of the block itself. So a
//   block that a data loader frees moves between cores twice, and no other line
//   does. The queue is closed at first; a closed queue accepts no block.
// Threads: Leave(): any thread. After leaving a block, a thread must not touch
//   this object again, because the chain may end with the last free. Close()
//   waits for threads in Leave(). The other functions need the lock of the
//   chain.
// Cost: Leave(): one spin lock. 768 bytes.
// Source: hotpath.md §5, §7 (pointer magazines). The magazine belongs to the
//   stream instead of the thread, so that no block is stranded when a thread
//   ends.
class RemoteFrees {
 public:
  static constexpr std::size_t kMost = 64;

  RemoteFrees() = default;
  RemoteFrees(const RemoteFrees&) = delete;
  RemoteFrees& operator=(const RemoteFrees&) = delete;

  // Leaves `block`, which is live. Returns false, and does nothing, if the
  // queue is closed or holds kMost blocks. On success the block counts as freed
  // and must not be used.
  bool Leave(Block& block) noexcept;

  void Open() noexcept;
  // Closes the queue. The blocks in it stay.
  void Close() noexcept;
  // Frees the blocks that threads have left.
  void TakeIn() noexcept;
  // True if blocks are queued. May be called without the lock; then the result
  // may be outdated.
  bool any() const noexcept {
    return left_.load(std::memory_order_acquire) !=
           taken_.load(std::memory_order_relaxed);
  }

 protected:
  ~RemoteFrees() = default;

 private:
  // Frees `blocks`, in the order in which they were left. The lock of the chain
  // is held.
  virtual void FreeLeft(std::span<Block* const> blocks) noexcept = 0;

  // Number of blocks since the start; wraps around.
  using Count = std::uint8_t;
  static Count Between(Count first, Count last) {
    return static_cast<Count>(last - first);
  }
  // Keeps the slot of a block the same when the counts wrap.
  static_assert(256 % kMost == 0 && kMost < 256);

  // Two cache lines each, because processors fetch them in pairs. Members of
  // the side that leaves blocks:
  alignas(128) SpinLock leaving_;
  bool is_open_ = false;  // guarded by leaving_
  Count seen_taken_ = 0;  // taken_ at its last load; guarded by leaving_
  // blocks left so far; written with leaving_ held
  std::atomic<Count> left_{0};
  // The blocks counted by left_ and not by taken_.
  alignas(128) std::array<Block*, kMost> blocks_{};
  // Members of the side that takes blocks in. taken_ is the number of blocks
  // taken so far.
  alignas(128) std::atomic<Count> taken_{0};
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_HIT_REMOTE_FREES_H_
