#ifndef STRATA_STRATEGY_BFC_ARENA_TIMESTAMPS_H_
#define STRATA_STRATEGY_BFC_ARENA_TIMESTAMPS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "strata/allocation/allocation.h"
#include "strata/strategy/bfc/arena/note.h"

namespace strata {

// Counts events of one device, so that frees and kernels have an order.
//
// Model: BfcAllocator stamps frees and KernelTracker stamps kernels with one
//   shared counter.
// Threads: any thread.
// Source: tf_bfc.md R35.
class SharedCounter {
 public:
  // 1, 2, 3 …
  std::uint64_t Next() { return ++count_; }
  std::uint64_t Get() const { return count_.load(); }

 private:
  std::atomic<std::uint64_t> count_{0};
};

// The free blocks that may still be in use: their stamps are not safe yet.
//
// Model: a list in the order of the stamps, oldest first, with links in the
//   notes of the blocks. Every such block is in the list exactly once, after
//   splits and coalesces too, so none is lost (tf_bfc.md W7).
// Threads: not thread-safe. The allocator's lock guards it.
// Cost: O(1) each.
class WaitingList {
 public:
  bool empty() const { return first_ == nullptr; }
  Block* first() const { return first_; }
  std::size_t count() const { return count_; }

  // Requires that `block` has the latest stamp.
  void Append(Block* block);
  void Remove(Block* block);
  // Replaces `old` with `block`, which is not in the list.
  void Replace(Block* old, Block* block);
  // Inserts `block`, which is not in the list and has the same stamp, after
  // `before`.
  void InsertAfter(Block* before, Block* block);

  // A walk that tolerates changes of the list. Step returns the present block
  // and advances; null at the end.
  void StartWalk() { walk_ = first_; }
  Block* Step() {
    Block* block = walk_;
    if (block != nullptr) walk_ = NoteOf(block).waiting_next;
    return block;
  }

  // Whether links, order and stamps agree. For tests; O(blocks).
  bool IsConsistent() const;

 private:
  Block*& NextOf(Block* block) {
    return block != nullptr ? NoteOf(block).waiting_next : first_;
  }
  Block*& PreviousOf(Block* block) {
    return block != nullptr ? NoteOf(block).waiting_previous : last_;
  }
  void Link(Block* before, Block* block, Block* after);

  Block* first_ = nullptr;
  Block* last_ = nullptr;
  Block* walk_ = nullptr;  // The next block of the walk.
  std::size_t count_ = 0;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_BFC_ARENA_TIMESTAMPS_H_
