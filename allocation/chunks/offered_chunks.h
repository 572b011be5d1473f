#ifndef STRATA_ALLOCATION_CHUNKS_OFFERED_CHUNKS_H_
#define STRATA_ALLOCATION_CHUNKS_OFFERED_CHUNKS_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "strata/allocation/allocation.h"
#include "strata/allocation/streams/chain_stream.h"
#include "strata/allocation/visitor.h"
#include "strata/base/function_ref.h"
#include "strata/platform/locks/spin_lock.h"

namespace strata {

// The chunks that are available for the next growth of any stream of a place.
//
// Model: a chunk under consideration leaves the list, and returns to it without
//   host memory: nodes of the list move.
// Units: bytes.
// Threads: any thread. No lock is held during a call of the device, of the heap
//   or of a function argument.
class OfferedChunks {
 public:
  // A chunk that no strategy holds, and the work that may still use it.
  struct Entry {
    Allocation* chunk = nullptr;
    // Timeline of the last user and the tick after its work; null: none.
    std::shared_ptr<StreamTimeline> timeline;
    std::uint64_t tick = 0;
    // The last user, if it could not be waited for; null: none. A chunk with
    // neither is free.
    std::shared_ptr<ChainStream> stream;

    // Orders the last use before the later work of `user`. Returns true on
    // success.
    bool OrderBefore(ChainStream& user) const;
    // Waits for the last use. Returns false if that fails.
    bool AwaitLastUse() const;
    // True if the last use has completed. Never waits.
    bool IsLastUseOver() const;
  };

  // Adds a chunk. Returns false if the host has no memory for it.
  bool Add(const Entry& offered) noexcept;
  // Returns the smallest chunk of at least `bytes` and at most twice that, if
  // `user` can be ordered after its last use; else null.
  Allocation* TakeFor(std::size_t bytes, ChainStream& user) noexcept;

  // Receives a chunk that left the list; `is_over`: its last use has completed.
  // Returns the bytes that the system received.
  using Give = FunctionRef<std::size_t(const Entry&, bool is_over)>;
  // Passes chunks whose last use has completed to `give`, until their sum is
  // `bytes`. Returns their bytes. Never waits.
  std::size_t GiveDone(std::size_t bytes, Give give) noexcept;
  // Passes the chunks that are now in the list to `give`, after a wait for the
  // last use of each. If the wait fails, a chunk stays, unless `all`. Sets
  // `has_given` if a chunk left. Returns the bytes released.
  std::size_t GiveAll(bool all, Give give, bool& has_given) noexcept;

  // Sum of the chunks, each rounded up to `step`.
  std::size_t Bytes(std::size_t step = 1) const noexcept;
  // Errors: std::bad_alloc.
  void AppendBlocks(std::vector<BlockInfo>& blocks) const;

 private:
  using List = std::list<Entry>;

  std::size_t size() const noexcept;
  // Return a list of the one chunk that left, or an empty list.
  List TakeOut(std::size_t bytes) noexcept;
  List TakeOldestOut() noexcept;
  void Append(List& one) noexcept;

  mutable SpinLock lock_;
  List chunks_;  // oldest first; guarded by lock_
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_CHUNKS_OFFERED_CHUNKS_H_
