#ifndef STRATA_STRATEGY_POOL_ALLOCATOR_H_
#define STRATA_STRATEGY_POOL_ALLOCATOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "strata/allocation/hit_path.h"
#include "strata/allocation/record_slab.h"
#include "strata/allocation/usage.h"
#include "strata/strategy/exact_index.h"
#include "strata/strategy/pooling_strategy.h"
#include "strata/strategy/strategy_options.h"
#include "strata/strategy/wait_rounds.h"

namespace strata {

// Keeps freed pieces of the system's memory, whole, for requests of exactly
// their size.
//
// Model: a request is rounded (`none`: not at all; `pow2`: up to a power of
//   two) and served by the piece of that size that was freed last; on a miss
//   the system gives one. Nothing is split or joined. A freed piece is kept; at
//   pool_size_limit pieces, or pool_cached_limit bytes, the ones kept longest
//   go to the system first. With pool_auto_resize, every 1000 pieces that went
//   this way the limit is looked at: if they are more than 0.2 % of the frees
//   and misses more than 0.2 % of the requests, it grows by a tenth, or to 100.
//   A limit of 0 pieces keeps nothing. Before the system gets a piece, its
//   streams are waited for, unless they were since it was freed. What cannot be
//   waited for, as a stream captures, is kept beyond the limits, until a later
//   free can wait.
// Threads: any thread.
// Cost: a hit and the free that keeps a piece are O(1) under one spin lock,
//   without heap or system call.
// Source: tf_bfc.md §2 (PoolAllocator), without its faults: W19 (a log line per
//   resize; memory that exhaustion cannot reach), the header in the memory.
class PoolAllocator final : public PoolingStrategy, private SharedHitPath {
 public:
  // Errors: std::invalid_argument if `options` name no rounder.
  PoolAllocator(std::shared_ptr<ChunkPool> pool,
                std::shared_ptr<ChainStream> stream,
                const StrategyOptions& options);
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

  // The most pieces kept, as it is now.
  std::size_t size_limit() const;
  // Pieces that the limits sent to the system so far.
  std::uint64_t evictions() const;
  // Whether lists and counters agree. For tests; O(pieces).
  bool IsConsistent() const;

 private:
  // What the rule of pool_auto_resize looks at, since the limit last changed.
  struct Rates {
    std::uint64_t puts = 0;  // pieces that were freed
    std::uint64_t evicted = 0;
    std::uint64_t hits = 0;
    std::uint64_t misses = 0;
  };

  struct Amount {
    std::size_t pieces = 0;
    std::size_t bytes = 0;
  };

  // HitPath. A free for which others have to leave walks.
  Block* TakeCached(std::size_t bytes) noexcept override;
  bool GiveCached(Block* block) noexcept override;

  // ChunkHolder. Pieces are of use to their own sizes only, so none is offered
  // to other streams.
  IdleInfo Idle(std::size_t fit_bytes) const noexcept override;
  bool IdleIsDone() noexcept override { return false; }
  std::size_t GiveBack(const GiveBackRequest& request) noexcept override;
  void AppendBlocks(std::vector<BlockInfo>& blocks) const override;

  // GiveBackRequest::Kind.
  std::size_t GiveBackAll() noexcept;
  std::size_t GiveBackDone(std::size_t bytes) noexcept;

  std::optional<std::size_t> RoundedSize(std::size_t bytes) const;
  Allocation* Refuse(Failure::Reason reason, const Request& request,
                     Failure& failure) noexcept;
  Allocation* Grow(const Request& request, std::size_t size,
                   Failure& failure) noexcept;
  // What a wait has covered; without `is_done`, to the chunk pool.
  std::size_t GiveToSystem(RecordList& leaving, bool is_done) noexcept;
  // Gives it what is kept beyond the limits, unless that cannot be waited for.
  void ShrinkToLimits() noexcept;
  // A piece that the limits do not let stay. False if it has to, because it
  // cannot be waited for.
  bool GiveOrKeep(Block* block) noexcept;
  // Waits for the work that may still use what is free by now. False if it
  // cannot.
  bool Wait() noexcept;
  // The thread that waited has told a checker that its wait is known here.
  void NoteWait() noexcept;

  // Hold lock_.
  void Start(Block* block, std::size_t requested);
  void Stop(Block* block);
  // A kept piece of this size, handed out; null if there is none.
  Block* TakeKept(std::size_t size, std::size_t requested);
  void Keep(Block* block);
  void Insert(Block* block);
  Block* TakeOldest();
  // Whether the limits let one piece of so many bytes stay.
  bool Keeps(std::size_t bytes) const;
  bool HasRoom(std::size_t bytes) const;
  // Whether a free without a walk may exceed the limits: of what was taken
  // last, so that nothing is lost that a hit puts back at once.
  bool MayExceed(const Block& block) const;
  bool IsWithinLimits() const;
  void NoteExcess();
  // What a wait has covered of what exceeds the limits, oldest first; whether
  // that is all of it. Their sizes stay open until they are the system's.
  bool TakeExcess(RecordList& leaving);
  void Resize();

  const bool to_power_of_two_;
  const bool auto_resize_;
  const std::size_t cached_limit_bytes_;  // 0: none
  const std::size_t alignment_;

  LentLock& lock_{*shared_lock()};
  // All below guarded by lock_.
  std::size_t size_limit_;
  Rates rates_;
  std::uint64_t evictions_ = 0;
  // All that was kept when it last exceeded the limits, or ceased to.
  Amount excess_;
  ExactIndex cached_;
  WaitRounds waits_;  // of kept pieces: Block::offset_units
  BlockQueue live_;
  std::size_t cached_system_bytes_ = 0;  // each piece in whole steps
  UseCounts uses_;
  Stats stats_;  // failures, hits and misses; the rest stays 0
};

}  // namespace strata

#endif  // STRATA_STRATEGY_POOL_ALLOCATOR_H_
