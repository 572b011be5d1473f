#ifndef STRATA_STRATEGY_POOL_POOL_ALLOCATOR_H_
#define STRATA_STRATEGY_POOL_POOL_ALLOCATOR_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "strata/allocation/hit/hit_path.h"
#include "strata/allocation/hit/usage.h"
#include "strata/allocation/record_slab.h"
#include "strata/platform/locks/spin_lock.h"
#include "strata/strategy/blocks/exact_index.h"
#include "strata/strategy/pool/options.h"
#include "strata/strategy/pooling_strategy.h"

namespace strata {

// Records which free blocks a wait for all streams has covered. Covered blocks
// need no other wait before they are freed to the system.
//
// Model: a free stamps its block with the number of waits begun so far. A wait
//   covers the stamps below its own number. Stamps have 16 bits and wrap: an
//   old block may appear younger, never older, and is then waited for once
//   more.
// Threads: not thread-safe. The strategy's lock guards it, but is not held
//   during a wait.
// Cost: O(1). A free stores two bytes.
// Source: cuda_semantics.md M6.
class WaitRounds {
 public:
  using Stamp = std::uint16_t;

  // Stamp of a block that is freed now.
  Stamp now() const { return static_cast<Stamp>(begun_); }
  // Begins a wait; returns its number.
  std::uint64_t Begin() { return ++begun_; }
  // Ends a wait that succeeded.
  void End(std::uint64_t number) { ended_ = std::max(ended_, number); }
  // Whether a wait that succeeded began after the free.
  bool Covers(Stamp stamp) const {
    return static_cast<Stamp>(begun_ - stamp) > begun_ - ended_;
  }

 private:
  std::uint64_t begun_ = 0;
  std::uint64_t ended_ = 0;  // The latest wait that succeeded.
};

// Caches freed pieces of the system's memory, whole, for requests of exactly
// their size.
//
// Model: a request is rounded (`none`: not at all; `pow2`: up to a power of
//   two). The piece of that size that was freed last serves it; on a miss the
//   system allocates one. Nothing is split or coalesced.
//   Limits: a freed piece is cached. At pool_size_limit pieces, or
//   pool_cached_limit bytes, the oldest pieces are freed to the system first. A
//   limit of 0 pieces caches nothing.
//   Resize: with pool_auto_resize, the limit is checked after every 1000
//   evicted pieces. It grows by a tenth, or to 100, if evictions exceed 0.2 %
//   of the frees and misses exceed 0.2 % of the requests.
//   Waits: before a piece is freed to the system, its streams are waited for,
//   unless they were since the piece was freed. A piece of a capturing stream
//   cannot be waited for; it stays beyond the limits until a later free can
//   wait.
// Threads: any thread.
// Cost: a hit, and a free that caches the piece, are O(log n) in the sizes of
//   pieces under one spin lock, without heap or system call.
// Source: tf_bfc.md §2 (PoolAllocator), without its faults: W19 (a log line per
//   resize; memory that exhaustion cannot reach), the header in the memory.
class PoolAllocator final : public PoolingStrategy, private HitPath {
 public:
  // Errors: std::invalid_argument if `options` name no rounder.
  PoolAllocator(std::shared_ptr<ChunkPool> pool,
                std::shared_ptr<ChainStream> stream,
                const PoolOptions& options);
  ~PoolAllocator() override;

  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override;
  void DoFree(Allocation* allocation) noexcept override;

  const char* name() const override { return "pool"; }
  std::size_t max_alignment() const override { return alignment_; }
  std::size_t natural_alignment() const override { return alignment_; }
  Stats stats() const override;
  void ResetPeak() override;
  HitPath* hit_path() override { return this; }

  // Most pieces in the cache, at present.
  std::size_t size_limit() const;
  // Pieces that the limits have freed to the system so far.
  std::uint64_t evictions() const;
  // Whether lists and counters agree. For tests; O(pieces).
  bool IsConsistent() const;

 private:
  struct Amount {
    std::size_t pieces = 0;
    std::size_t bytes = 0;
  };

  // HitPath. A free that would evict other pieces takes the full path.
  Block* TakeCached(std::size_t bytes) noexcept override;
  bool GiveCached(Block* block) noexcept override;
  void PutBack(Block* block) noexcept override;

  // ChunkHolder. A piece is of use only to its own size, so none is offered to
  // other streams.
  IdleInfo Idle(std::size_t fit_bytes) const noexcept override;
  bool IdleIsDone() noexcept override { return false; }
  std::size_t GiveBackDone(std::size_t bytes,
                           std::size_t least_bytes) noexcept override;
  std::size_t GiveBackAll() noexcept override;
  void AppendBlocks(std::vector<BlockInfo>& blocks) const override;

  std::optional<std::size_t> RoundedSize(std::size_t bytes) const;
  Allocation* Refuse(Failure::Reason reason, const Request& request,
                     Failure& failure) noexcept;
  Allocation* Grow(const Request& request, std::size_t size,
                   Failure& failure) noexcept;
  // Frees pieces that a wait has covered to the system; without `is_done`, to
  // the chunk pool.
  std::size_t GiveToSystem(RecordSlab::List& leaving, bool is_done) noexcept;
  // Frees pieces above the limits to the system, unless they cannot be waited
  // for.
  void ShrinkToLimits() noexcept;
  // Frees a piece that exceeds the limits. False if it stays because it cannot
  // be waited for.
  bool GiveOrKeep(Block* block) noexcept;
  // Waits for the work that may still use the pieces free by now. False if that
  // fails.
  bool Wait() noexcept;
  // Tells a checker, on the thread that waited, that its wait is known here.
  void NoteWait() noexcept;

  // Hold lock_.
  void Start(Block* block, std::size_t requested);
  void Stop(Block* block);
  // Hands out a cached piece of this size; null if there is none.
  Block* TakeKept(std::size_t size, std::size_t requested);
  void Keep(Block* block);
  Block* TakeOldest();
  // Whether the limits allow to cache a piece of `bytes`.
  bool Keeps(std::size_t bytes) const;
  bool HasRoom(std::size_t bytes) const;
  // Whether a free on the hit path may exceed the limits. True only for the
  // piece taken last, up to excess_, so that a hit that reuses it at once
  // evicts nothing.
  bool MayExceed(const Block& block) const;
  bool IsWithinLimits() const;
  void NoteExcess();
  // Removes the pieces above the limits that a wait has covered, oldest first.
  // True if these are all. Their sizes stay open until the system has them.
  bool TakeExcess(RecordSlab::List& leaving);
  void Resize();

  const bool to_power_of_two_;
  const bool auto_resize_;
  const std::size_t cached_limit_bytes_;  // 0: no limit.
  const std::size_t alignment_;
  // The system rounds the size of a piece up to a multiple of it.
  const std::size_t granule_bytes_;

  mutable SpinLock lock_;
  // All below guarded by lock_.
  std::size_t size_limit_;
  // For pool_auto_resize: the counters when the limit last changed, and the
  // pieces that were cached and evicted since.
  Stats at_resize_;
  std::uint64_t puts_ = 0;
  std::uint64_t evicted_ = 0;
  std::uint64_t evictions_ = 0;
  // Amount cached when it last exceeded the limits, or last ceased to.
  Amount excess_;
  ExactIndex cached_;
  WaitRounds waits_;  // Stamps of cached pieces: Block::offset_units.
  BlockQueue live_;
  // Sum of the pieces, each in whole steps of kSystemStepBytes.
  std::size_t cached_system_bytes_ = 0;
  UseCounts uses_;
  Stats stats_;  // Failures, hits and misses; the other fields stay 0.
};

}  // namespace strata

#endif  // STRATA_STRATEGY_POOL_POOL_ALLOCATOR_H_
