#ifndef STRATA_ALLOCATION_CHUNKS_CHUNK_VISITORS_H_
#define STRATA_ALLOCATION_CHUNKS_CHUNK_VISITORS_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "strata/base/require_cxx20.h"

namespace strata {

// Functions that are called for each range of memory that is acquired from or
// released to the system: a chunk, or mapped pages.
//
// Model: they run in the order of Add() for a new range, and in reverse order
//   for a range that is released.
// Threads: any thread. No lock is held during a visit.
class ChunkVisitors {
 public:
  // `count_change`: +1 after a range is acquired, -1 before it is released.
  // Must not throw.
  using Visitor =
      std::function<void(void* data, std::size_t bytes, int count_change)>;

  ChunkVisitors() : visitors_(std::make_shared<const List>()) {}

  // Errors: std::bad_alloc.
  void Add(Visitor visitor);
  void Visit(void* data, std::size_t bytes, int count_change) const noexcept;

 private:
  using List = std::vector<Visitor>;

  mutable std::mutex mutex_;
  // The list is replaced, never changed: readers copy the pointer. Guarded by
  // mutex_.
  std::shared_ptr<const List> visitors_;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_CHUNKS_CHUNK_VISITORS_H_
