#ifndef STRATA_STRATEGY_VIRTUAL_MEMORY_FREE_HANDLES_H_
#define STRATA_STRATEGY_VIRTUAL_MEMORY_FREE_HANDLES_H_

#include <cstddef>
#include <vector>

#include "strata/allocation/allocation.h"
#include "strata/strategy/free_epochs.h"
#include "strata/strategy/virtual_memory/address_range.h"

namespace strata {

// A handle that lies in one free block.
struct FreeHandle {
  PageHandle* handle = nullptr;
  Block* block = nullptr;  // around it; once it is taken, just of it
  FreeEpochs::Epoch epoch = 0;
  // For FreeHandles. Before Sort: its number in the order of Add. Afterwards:
  // of the handles up to this one, the number up to the last one that is not
  // chosen, or up to a later one that is.
  std::size_t left = 0;
};

// The free handles that a growth may move, and the choice among them.
//
// Model: Add all, Sort once, then Choose. A handle is chosen once.
// Threads: none; the strategy's lock guards it. No heap call but in Reserve.
// Cost: Sort is O(n log n), 1 to 9 ms for 80 GiB in 40 960 pages. Choose is
//   O(log n), amortised, and of what is larger than missing O(sizes log n).
class FreeHandles {
 public:
  // Errors: std::bad_alloc.
  void Reserve(std::size_t count) { list_.reserve(count); }
  std::size_t capacity() const { return list_.capacity(); }
  std::size_t size() const { return list_.size(); }
  void Clear() { list_.clear(); }

  // False if there is no room for one more.
  bool Add(PageHandle& handle, Block& block);
  void Sort();
  // Chooses the handle to move to a hole that lacks `missing` bytes and has
  // `space`: the largest that does not exceed what is missing, or else the
  // smallest that the hole holds; the oldest among equals, and of those the one
  // that was added last. Null if there is none. The result stays where it is
  // until Clear.
  FreeHandle* Choose(std::size_t missing, std::size_t space);

 private:
  // The number of handles of at most `bytes`.
  std::size_t CountUpTo(std::size_t bytes) const;
  // Of the first `count` handles, the number up to the last one that is not
  // chosen; 0 if all are.
  std::size_t CountLeft(std::size_t count);

  // Sorted by size; of one size the one to choose first is the last.
  std::vector<FreeHandle> list_;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_VIRTUAL_MEMORY_FREE_HANDLES_H_
