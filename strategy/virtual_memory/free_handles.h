#ifndef STRATA_STRATEGY_VIRTUAL_MEMORY_FREE_HANDLES_H_
#define STRATA_STRATEGY_VIRTUAL_MEMORY_FREE_HANDLES_H_

#include <cstddef>
#include <vector>

#include "strata/allocation/allocation.h"
#include "strata/strategy/blocks/free_epochs.h"
#include "strata/strategy/virtual_memory/address_range.h"

namespace strata {

struct FreeHandle {
  PageHandle* handle = nullptr;
  // The free block around the handle; once taken, the block of just the handle.
  Block* block = nullptr;
  FreeEpochs::Epoch epoch = 0;
  // For FreeHandles. Before Sort: number in the order of Add. After Sort, for a
  // handle that is not chosen: its index plus one. For a chosen handle: the
  // length of a prefix of the list that ends before this handle and contains
  // every earlier handle that is not chosen.
  std::size_t left = 0;
};

// The free handles that a growth may move, and the choice among them.
//
// Model: Add all, Sort once, then Choose. A handle is chosen once.
// Threads: not thread-safe. The strategy's lock guards it. Only Reserve uses
//   the heap.
// Cost: Sort is O(n log n), 1 to 9 ms for 80 GiB in 40 960 pages. Choose is
//   O(log n), amortised; among handles larger than `missing` it is O(sizes log
//   n).
class FreeHandles {
 public:
  // Errors: std::bad_alloc.
  void Reserve(std::size_t count) { list_.reserve(count); }
  std::size_t capacity() const { return list_.capacity(); }
  std::size_t size() const { return list_.size(); }
  void Clear() { list_.clear(); }

  // False: no room.
  bool Add(PageHandle& handle, Block& block);
  void Sort();
  // Chooses the handle to move to a hole that lacks `missing` bytes and has
  // `space` bytes. Prefers the largest handle of at most `missing` bytes, else
  // the smallest of at most `space` bytes. Among equal sizes: the oldest, then
  // the one added last. Null if there is none. The result is valid until Clear.
  FreeHandle* Choose(std::size_t missing, std::size_t space);

 private:
  // Number of handles of at most `bytes`.
  std::size_t CountUpTo(std::size_t bytes) const;
  // Length of the prefix of the first `count` handles that ends at the last
  // unchosen one; 0 if all are chosen.
  std::size_t CountLeft(std::size_t count);

  // Sorted by size; within one size, the first choice is last.
  std::vector<FreeHandle> list_;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_VIRTUAL_MEMORY_FREE_HANDLES_H_
