#ifndef STRATA_ALLOCATION_CHUNKS_OFFERED_CHUNKS_H_
#define STRATA_ALLOCATION_CHUNKS_OFFERED_CHUNKS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "strata/allocation/allocation.h"
#include "strata/allocation/chain_stream.h"
#include "strata/allocation/visitor.h"
#include "strata/platform/function_ref.h"
#include "strata/platform/spin_lock.h"

namespace strata {

// A chunk that no strategy holds, and the work that may still use it.
struct OfferedChunk {
  Allocation* chunk = nullptr;
  // Of the last user, and the moment after its work; null: none.
  std::shared_ptr<StreamTimeline> timeline;
  std::uint64_t tick = 0;
  // The last users, who could not be waited for; null: none. Without either,
  // the chunk is free.
  std::shared_ptr<ChainStream> stream;

  // True once `user` runs only after the last use.
  bool OrderBefore(ChainStream& user) const;
  // False if it could not be waited for.
  bool AwaitLastUse() const;
  // Never waits.
  bool IsLastUseOver() const;
};

// The chunks that serve the next growth of any stream of a place.
//
// Model: a chunk that is under consideration is out of the list and its place
//   is kept, so that it can return without host memory.
// Units: bytes.
// Threads: any thread. No lock is held during a call of the device or of a
//   function that is passed.
class OfferedChunks {
 public:
  // False if the host has no memory for a longer list.
  bool Add(const OfferedChunk& offered) noexcept;
  // The smallest chunk of at least `bytes` and at most twice that, if `user`
  // can be ordered after its last use; else null.
  Allocation* TakeFor(std::size_t bytes, ChainStream& user) noexcept;

  // Takes over a chunk that left the list, whose last use is over or not.
  // Returns the bytes that the system has got.
  using Give = FunctionRef<std::size_t(const OfferedChunk&, bool is_over)>;
  // Passes chunks whose last use is over to `give`, until they are `bytes`;
  // returns their bytes. Waits for nothing.
  std::size_t GiveDone(std::size_t bytes, Give give) noexcept;
  // Passes the chunks that are on the list now to `give`, after a wait for the
  // last use of each. Where that is not possible a chunk stays, or goes too if
  // `all`. Sets `has_given` if one left. Returns the bytes given.
  std::size_t GiveAll(bool all, Give give, bool& has_given) noexcept;

  // The sum, each chunk rounded up to `step`.
  std::size_t Bytes(std::size_t step = 1) const noexcept;
  // Errors: std::bad_alloc.
  void AppendBlocks(std::vector<BlockInfo>& blocks) const;

 private:
  std::size_t size() const noexcept;
  // Take a chunk out and keep its place, until PutBack or GiveUpPlace. One
  // without chunk if there is none.
  OfferedChunk TakeOut(std::size_t bytes) noexcept;
  OfferedChunk TakeOldestOut() noexcept;
  OfferedChunk TakeOutLocked(
      std::vector<OfferedChunk>::iterator found) noexcept;
  void PutBack(const OfferedChunk& offered) noexcept;
  void GiveUpPlace() noexcept;

  mutable SpinLock lock_;
  std::vector<OfferedChunk> chunks_;  // the oldest first; guarded by lock_
  std::size_t taken_out_ = 0;         // that may be put back; guarded by lock_
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_CHUNKS_OFFERED_CHUNKS_H_
