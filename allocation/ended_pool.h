#ifndef STRATA_ALLOCATION_ENDED_POOL_H_
#define STRATA_ALLOCATION_ENDED_POOL_H_

#include <cstddef>

#include "strata/allocation/chunk_holder.h"
#include "strata/allocation/chunk_pool.h"

namespace strata {

// A ChunkPool from which nobody allocates any more, as a holder of the pool
// below it. Live blocks keep such a pool and its chunks; the idle chunks among
// them are given back here.
//
// Model: idle bytes are the bytes that the holders of the ended pool have idle
//   and the chunks that it offers. None of them moves to another stream: they
//   go to the system, after a wait for the work that used them.
// Threads: any thread.
// Lifetime: both pools outlive it.
class EndedPool final : public ChunkHolder {
 public:
  // Errors: std::bad_alloc.
  EndedPool(ChunkPool& ended, ChunkPool& below);
  ~EndedPool() override;

  IdleInfo Idle(std::size_t fit_bytes) const noexcept override;
  // False: only a wait shows that the work is over.
  bool IdleIsDone() noexcept override { return false; }
  std::size_t GiveBack(const GiveBackRequest& request) noexcept override;

 private:
  ChunkPool& ended_;
  ChunkPool& below_;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_ENDED_POOL_H_
