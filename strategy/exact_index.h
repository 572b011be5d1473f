#ifndef STRATA_STRATEGY_EXACT_INDEX_H_
#define STRATA_STRATEGY_EXACT_INDEX_H_

#include <cstddef>
#include <memory>

#include "strata/allocation/allocation.h"

namespace strata {

// Blocks in a row, linked through Block::previous and Block::next.
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

// Free blocks by their exact size, and in the order in which they came.
//
// Model: a list per size, newest first, found through a hash table; all blocks
//   also stand in a queue, oldest first. A size has a list from Open on, as
//   often as it was opened and not closed; the heap is only asked for Supplies,
//   which are made without a lock, so that nothing here can fail.
// Units: bytes; sizes of any value, not rounded.
// Threads: none; the strategy's lock guards it. Supplies need no lock.
// Cost: O(1), without heap; a new table, when the sizes have doubled, is filled
//   at once. A size costs 32 bytes and its share of the table while it is open.
class ExactIndex {
 public:
  // Heap memory that Open may need and Close may leave over. Destroy it with no
  // lock held.
  class Supplies;

  ExactIndex();
  ExactIndex(const ExactIndex&) = delete;
  ExactIndex& operator=(const ExactIndex&) = delete;
  ~ExactIndex();

  // The buckets of the table that one more open size asks for; 0: this one
  // will do.
  std::size_t MissingBuckets() const;

  // One block more of `bytes` will come, again and again, until Close.
  void Open(std::size_t bytes, Supplies& supplies);
  // One less. The memory of a size that nobody has open goes to `supplies`.
  void Close(std::size_t bytes, Supplies& supplies);

  // The size of `block` is open.
  void Insert(Block* block);
  // The newest block of exactly `bytes`, taken out; null if there is none.
  Block* Take(std::size_t bytes);
  // The oldest block of all, taken out; null if there is none.
  Block* TakeOldest();

  std::size_t count() const { return count_; }
  std::size_t total_bytes() const { return total_bytes_; }
  // Sizes that are open.
  std::size_t sizes() const { return sizes_; }
  // Blocks in order of age, oldest first.
  const BlockQueue& queue() const { return queue_; }

  // Whether lists, queue and counters agree. For tests; O(blocks + buckets).
  bool IsConsistent() const;

 private:
  struct List {
    std::size_t bytes = 0;
    std::size_t opened = 0;   // how often, less how often closed
    Block* newest = nullptr;  // the rest follow Block::free_next
    List* next = nullptr;     // in the bucket
  };

  std::size_t BucketOf(std::size_t bytes) const;
  List* Find(std::size_t bytes) const;
  void Grow(Supplies& supplies);
  void Remove(List& list, Block* block);

  std::size_t bucket_count_;  // a power of two
  std::unique_ptr<List*[]> buckets_;
  std::size_t sizes_ = 0;
  std::size_t count_ = 0;
  std::size_t total_bytes_ = 0;
  BlockQueue queue_;
};

class ExactIndex::Supplies {
 public:
  Supplies() = default;
  Supplies(const Supplies&) = delete;
  Supplies& operator=(const Supplies&) = delete;
  ~Supplies();

  // Gets what one Open needs, and, if there is room for it, a table of
  // `buckets` buckets. False if the host is out of memory.
  bool Stock(std::size_t buckets) noexcept;

 private:
  friend class ExactIndex;

  List* lists_ = nullptr;  // linked through List::next
  std::unique_ptr<List*[]> buckets_;
  std::size_t bucket_count_ = 0;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_EXACT_INDEX_H_
