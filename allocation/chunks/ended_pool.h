#ifndef STRATA_ALLOCATION_CHUNKS_ENDED_POOL_H_
#define STRATA_ALLOCATION_CHUNKS_ENDED_POOL_H_

#include <cstddef>

#include "strata/allocation/chunks/chunk_holder.h"
#include "strata/allocation/chunks/chunk_pool.h"

namespace strata {

// A ChunkPool without further allocations, as a holder of the pool below it.
// Live blocks keep such a pool and its chunks alive. Its idle chunks are
// released here.
//
// Model: idle bytes are the idle bytes of the holders of the ended pool, and
//   the chunks that it offers. They do not move to another stream. They go to
//   the system after a wait for the work that used them.
// Threads: any thread.
// Lifetime: both pools outlive it.
class EndedPool final : public ChunkHolder {
 public:
  // Errors: std::bad_alloc.
  EndedPool(ChunkPool& ended, ChunkPool& below);
  ~EndedPool() override;

  IdleInfo Idle(std::size_t fit_bytes) const noexcept override;
  // Returns false: only a wait shows that the work has completed.
  bool IdleIsDone() noexcept override { return false; }
  std::size_t GiveBack(const GiveBackRequest& request) noexcept override;

 private:
  ChunkPool& ended_;
  ChunkPool& below_;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_CHUNKS_ENDED_POOL_H_
