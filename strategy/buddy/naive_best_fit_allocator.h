#ifndef STRATA_STRATEGY_BUDDY_NAIVE_BEST_FIT_ALLOCATOR_H_
#define STRATA_STRATEGY_BUDDY_NAIVE_BEST_FIT_ALLOCATOR_H_

#include <cstddef>
#include <memory>

#include "strata/allocation/chunks/chunk_pool.h"
#include "strata/allocation/hit/hit_path.h"
#include "strata/allocation/streams/chain_stream.h"
#include "strata/strategy/buddy/buddy_strategy.h"
#include "strata/strategy/strategy_options.h"

namespace strata {

// Best fit with coalescing in a few very large chunks. By default the first
// chunk takes most of the device.
//
// Model: one BuddyPool for the place. Sizes are rounded up to 256 bytes on a
//   device, 4 KiB on the host, 64 KiB pinned. BuddySizes gives the chunk sizes;
//   if the system refuses one, the chunk is as large as the request needs.
//   Chunks are freed only on Release and exhaustion. kLongLived changes
//   nothing, because every block is a part of a chunk that stays.
// Errors: exhaustion is a Failure with the numbers, like every other refusal.
// Threads: any thread.
// Cost: a hit is O(log n) under one lock, without heap or device call. A miss
//   queries the free memory of the device, then allocates a chunk.
// Source: paddle.md §3.4 rules 1 to 10, without §5 B8 (exhaustion that callers
//   could not catch), B9 and B18. No descriptors in memory, so results are
//   aligned to 256 (§3.2-6).
class NaiveBestFitAllocator final : public BuddyStrategy, private HitPath {
 public:
  // Makes no device call.
  //
  // Errors: std::invalid_argument that names the invalid option.
  NaiveBestFitAllocator(std::shared_ptr<ChunkPool> pool,
                        std::shared_ptr<ChainStream> stream,
                        const StrategyOptions& options);

  HitPath* hit_path() override { return this; }

 private:
  // HitPath. Huge blocks take the full path.
  Block* TakeCached(std::size_t bytes) noexcept override;
  bool GiveCached(Block* block) noexcept override;
  bool finds_all() const noexcept override { return false; }

  BuddyPool* PoolForRequest() noexcept override { return first_pool(); }
  void GiveToPool(BuddyPool& home, Block* block) noexcept override {
    home.Give(block);
  }
};

}  // namespace strata

#endif  // STRATA_STRATEGY_BUDDY_NAIVE_BEST_FIT_ALLOCATOR_H_
