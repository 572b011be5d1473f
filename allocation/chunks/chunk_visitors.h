#ifndef STRATA_ALLOCATION_CHUNKS_CHUNK_VISITORS_H_
#define STRATA_ALLOCATION_CHUNKS_CHUNK_VISITORS_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "strata/platform/require_cxx20.h"

namespace strata {

// Functions that learn of each range of memory that comes from or goes to the
// system: a chunk, or mapped pages.
//
// Model: they run in the order of Add for a range that came, and in reverse for
//   one that leaves; so the last to build on a range is the first to let go.
// Threads: any thread. No lock is held during a visit.
class ChunkVisitors {
 public:
  // `count_change`: +1 for a range that came, -1 before one leaves. Does not
  // throw.
  using Visitor =
      std::function<void(void* data, std::size_t bytes, int count_change)>;

  ChunkVisitors() : visitors_(std::make_shared<const List>()) {}

  // Errors: std::bad_alloc.
  void Add(Visitor visitor);
  void Visit(void* data, std::size_t bytes, int count_change) const noexcept;

 private:
  using List = std::vector<Visitor>;

  mutable std::mutex mutex_;
  // Replaced, never changed: readers copy the pointer. Guarded by mutex_.
  std::shared_ptr<const List> visitors_;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_CHUNKS_CHUNK_VISITORS_H_
