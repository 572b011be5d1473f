#ifndef STRATA_ALLOCATION_CHUNKS_RETIRED_HOLDERS_H_
#define STRATA_ALLOCATION_CHUNKS_RETIRED_HOLDERS_H_

#include <cstddef>
#include <memory>

#include "strata/allocation/chunks/chunk_holder.h"
#include "strata/platform/locks/spin_lock.h"

namespace strata {

// A queue of holders that serve no chain any more, but have lent blocks.
//
// Threads: any thread.
// Cost: O(1); no heap call.
class RetiredHolders {
 public:
  void Push(std::unique_ptr<ChunkHolder> holder) noexcept;
  // Removes the holder that was pushed first; null if the queue is empty.
  std::unique_ptr<ChunkHolder> Pop() noexcept;
  std::size_t size() const noexcept;

 private:
  mutable SpinLock lock_;
  // Guarded by lock_. Linked through ChunkHolder::next_retired_.
  std::unique_ptr<ChunkHolder> first_;
  ChunkHolder* last_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_CHUNKS_RETIRED_HOLDERS_H_
