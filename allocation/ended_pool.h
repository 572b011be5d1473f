#ifndef STRATA_ALLOCATION_ENDED_POOL_H_
#define STRATA_ALLOCATION_ENDED_POOL_H_

#include <cstddef>

#include "strata/allocation/chunk_holder.h"
#include "strata/allocation/chunk_pool.h"
#include "strata/platform/stream.h"

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

  // No stream: an ended pool serves none.
  Stream holder_stream() const noexcept override { return Stream(); }
  std::size_t IdleBytes() const noexcept override {
    return ended_.IdleBytes(/*of_limit=*/true);
  }
  std::size_t IdleSystemBytes() const noexcept override {
    return ended_.IdleBytes(/*of_limit=*/false);
  }
  std::size_t SmallestIdle(std::size_t /*bytes*/) const noexcept override {
    return 0;
  }
  std::size_t LargestIdle() const noexcept override { return 0; }
  // False: only a wait shows that the work is over.
  bool IdleIsDone() noexcept override { return false; }
  std::size_t GiveBack(std::size_t /*bytes*/) noexcept override { return 0; }
  std::size_t OfferIdle(std::size_t /*bytes*/) noexcept override { return 0; }
  std::size_t GiveBackAll() noexcept override;
  std::size_t GiveBackEnded() noexcept override { return GiveBackAll(); }

 private:
  ChunkPool& ended_;
  ChunkPool& below_;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_ENDED_POOL_H_
