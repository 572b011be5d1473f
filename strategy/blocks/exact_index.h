#ifndef STRATA_STRATEGY_BLOCKS_EXACT_INDEX_H_
#define STRATA_STRATEGY_BLOCKS_EXACT_INDEX_H_

#include <cstddef>
#include <map>

#include "strata/allocation/allocation.h"

namespace strata {

// A queue of blocks, linked through Block::previous and Block::next.
class BlockQueue {
 public:
  Block* front() const { return front_; }
  Block* back() const { return back_; }
  bool empty() const { return front_ == nullptr; }

  void PushBack(Block* block);
  void Remove(Block* block);

 private:
  Block* front_ = nullptr;
  Block* back_ = nullptr;
};

// Free blocks by exact size, and by the order of insertion.
//
// Model: a map from each open size to a list, newest block first, and a queue
//   of all blocks, oldest first. A size is open while it was opened more often
//   than closed. The nodes of the map are made and destroyed outside of the
//   lock, so no function here fails or calls the heap.
// Units: bytes; sizes of any value, not rounded.
// Threads: not thread-safe. The strategy's lock guards it.
// Cost: O(log n) in the open sizes.
class ExactIndex {
  struct List {
    std::size_t opened = 0;   // Calls of Open minus calls of Close.
    Block* newest = nullptr;  // The older ones follow through Block::free_next.
  };

 public:
  using Sizes = std::map<std::size_t, List>;

  ExactIndex() = default;
  ExactIndex(const ExactIndex&) = delete;
  ExactIndex& operator=(const ExactIndex&) = delete;

  // The memory that one Open needs; empty if the host is out of memory.
  static Sizes MakeSpare() noexcept;
  // Opens the size `bytes` once more, with the memory of `spare` if it is a new
  // size. Insert accepts blocks of it until Close.
  void Open(std::size_t bytes, Sizes& spare);
  // Undoes one Open. The memory of a size that is no longer open goes to
  // `emptied`.
  void Close(std::size_t bytes, Sizes& emptied);

  // Requires that the size of `block` is open.
  void Insert(Block* block);
  // Removes and returns the newest block of exactly `bytes`; null if there is
  // none.
  Block* Take(std::size_t bytes);
  // Removes and returns the oldest block; null if there is none.
  Block* TakeOldest();

  std::size_t count() const { return count_; }
  std::size_t total_bytes() const { return total_bytes_; }
  // Number of open sizes.
  std::size_t sizes() const { return sizes_.size(); }
  // Blocks in order of age, oldest first.
  const BlockQueue& queue() const { return queue_; }

  // Whether lists, queue and counters agree. For tests; O(blocks + sizes).
  bool IsConsistent() const;

 private:
  void Remove(List& list, Block* block);

  Sizes sizes_;
  std::size_t count_ = 0;
  std::size_t total_bytes_ = 0;
  BlockQueue queue_;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_BLOCKS_EXACT_INDEX_H_
