#ifndef STRATA_STRATEGY_BLOCKS_EXACT_INDEX_H_
#define STRATA_STRATEGY_BLOCKS_EXACT_INDEX_H_

#include <cstddef>
#include <memory>

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
// Model: a hash table maps each open size to a list, newest block first. A
//   queue holds all blocks, oldest first. A size is open while it was opened
//   more often than closed. Heap memory comes only from Supplies, which are
//   filled without a lock, so no function here can fail.
// Units: bytes; sizes of any value, not rounded.
// Threads: not thread-safe. The strategy's lock guards it. Supplies need no
//   lock.
// Cost: O(1), without heap. When the number of sizes has doubled, the table is
//   rehashed at once. An open size costs 32 bytes and its share of the table.
class ExactIndex {
 public:
  // Heap memory that Open may need and Close may leave over. Destroy it while
  // no lock is held.
  class Supplies;

  ExactIndex();
  ExactIndex(const ExactIndex&) = delete;
  ExactIndex& operator=(const ExactIndex&) = delete;
  ~ExactIndex();

  // The number of buckets that the table needs for one more open size; 0: the
  // present table suffices.
  std::size_t MissingBuckets() const;

  // Opens the size `bytes` once more. Insert accepts blocks of it until Close.
  void Open(std::size_t bytes, Supplies& supplies);
  // Undoes one Open. The memory of a size that is no longer open goes to
  // `supplies`.
  void Close(std::size_t bytes, Supplies& supplies);

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
  std::size_t sizes() const { return sizes_; }
  // Blocks in order of age, oldest first.
  const BlockQueue& queue() const { return queue_; }

  // Whether lists, queue and counters agree. For tests; O(blocks + buckets).
  bool IsConsistent() const;

 private:
  struct List {
    std::size_t bytes = 0;
    std::size_t opened = 0;   // Calls of Open minus calls of Close.
    Block* newest = nullptr;  // The older ones follow through Block::free_next.
    List* next = nullptr;     // Next list of the bucket.
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

  // Allocates the memory that one Open needs, and a table of `buckets` buckets
  // if the memory suffices. False if the host is out of memory.
  bool Stock(std::size_t buckets) noexcept;

 private:
  friend class ExactIndex;

  List* lists_ = nullptr;  // linked through List::next
  std::unique_ptr<List*[]> buckets_;
  std::size_t bucket_count_ = 0;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_BLOCKS_EXACT_INDEX_H_
