#ifndef STRATA_STRATEGY_BFC_BFC_ALLOCATOR_H_
#define STRATA_STRATEGY_BFC_BFC_ALLOCATOR_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>

#include "strata/allocation/hit/hit_path.h"
#include "strata/platform/locks/spin_lock.h"
#include "strata/strategy/bfc/arena/arena.h"
#include "strata/strategy/bfc/arena/note.h"
#include "strata/strategy/bfc/growth_plan.h"
#include "strata/strategy/bfc/options.h"
#include "strata/strategy/bfc/reports/snapshot.h"
#include "strata/strategy/pooling_strategy.h"

namespace strata {

// TensorFlow's best fit with coalescing. Returns the same offsets for the same
// calls.
//
// Model: sizes are rounded up to 256 bytes.
//   Search: the smallest free block that fits, at the lowest address among
//   equals. It is split only if half of it, or 128 MiB, would be wasted. The
//   user gets the low end.
//   Growth: on a miss the pool grows by a region, each twice the last, up to
//   the limit. If the system refuses, it requests a tenth less, repeatedly.
//   Then it replaces idle regions with a larger one.
//   Free: a freed block coalesces with its free neighbours. With a counter,
//   frees are stamped. A block with an unsafe stamp is not coalesced, and does
//   not serve a request for memory freed before an earlier stamp.
//   With two ends, each end allocates from its side of one region. With a front
//   cache, freed blocks of sizes that recur stay whole there until a search
//   finds no other block, or until a caller reads the free blocks.
// Threads: any thread. One thread at a time grows.
// Cost: a hit is one lock and O(log n) in the free blocks of one size class,
//   without heap or device call; 128 bytes of metadata per block.
// Source: tf_bfc.md §1, without W4 to W8, W13 to W15, W20; docs/rules/bfc.md.
class BfcAllocator final : public PoolingStrategy, private HitPath {
 public:
  // `stream` stands for all streams that share this strategy. Its device, if
  // there is one, reports the memory of the place. No device call.
  //
  // Errors: std::invalid_argument that names the invalid option.
  BfcAllocator(std::shared_ptr<ChunkPool> pool,
               std::shared_ptr<ChainStream> stream, BfcOptions options);
  ~BfcAllocator() override;

  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override;
  void DoFree(Allocation* allocation) noexcept override;

  const char* name() const override { return "bfc"; }
  std::size_t max_alignment() const override { return kMaxAlignment; }
  std::size_t natural_alignment() const override { return kBfcGranuleBytes; }
  Stats stats() const override;
  void ResetPeak() override;
  HitPath* hit_path() override;

  // Declares memory freed with a stamp below `count` safe for all streams
  // (R37). Ignores values below an earlier one. A larger value lets waiting
  // requests search again.
  void SetSafeFrontier(std::uint64_t count) noexcept;
  // Null: frees are not stamped.
  const std::shared_ptr<SharedCounter>& counter() const {
    return options_.counter;
  }

  // Facts of a live allocation of this strategy (R58): the requested size, the
  // allocated size, and its number. Numbers start at 1, in the order of
  // allocation, and are never reused.
  static std::size_t RequestedSize(const Allocation& allocation);
  static std::size_t AllocatedSize(const Allocation& allocation);
  static std::int64_t AllocationId(const Allocation& allocation);

  // R47, R48.
  BfcSnapshot::Numbers GetNumbers() const;
  // R49: resets counts and peaks; the memory that the strategy holds does not
  // change.
  void ClearStats();
  // A full report, made under the lock. O(blocks).
  //
  // Errors: std::bad_alloc.
  BfcSnapshot Snapshot() const;

  // Whether R5 holds and every count is right. For tests; O(blocks). Does not
  // flush the front cache.
  bool IsConsistent() const;
  // Free blocks whose stamp is not safe. For tests.
  std::size_t waiting_count() const;

 private:
  // Acquires the lock and puts every free block into the index.
  [[nodiscard]] std::unique_lock<SpinLock> LockJoined() const {
    std::unique_lock<SpinLock> lock(lock_);
    arena_.JoinAll();
    return lock;
  }

  // HitPath.
  Block* TakeCached(std::size_t bytes) noexcept override;
  bool GiveCached(Block* block) noexcept override;

  // ChunkHolder.
  IdleInfo Idle(std::size_t fit_bytes) const noexcept override;
  // No OfferIdle: a region serves every stream of the place already.
  std::size_t GiveBackBestFit(std::size_t bytes) noexcept override;
  std::size_t GiveBackDone(std::size_t bytes,
                           std::size_t least_bytes) noexcept override;
  std::size_t GiveBackAll() noexcept override;
  void AppendBlocks(std::vector<BlockInfo>& blocks) const override;

  // R7, steps 3 and 4. Null if no block fits, or if records ran out; then
  // `failure` has the reason.
  Block* FindHeld(const BfcAsk& ask, Failure& failure) noexcept;
  // R7, step 6.
  Block* FindUnsafe(const BfcAsk& ask, Failure& failure) noexcept;
  Block* TakeLocked(const BfcAsk& ask) noexcept;  // Hold lock_.
  // R7, steps 5 to 7. `turns_before`: value of turn_ before the search that
  // failed.
  Block* Grow(const BfcAsk& ask, std::uint64_t turns_before,
              Failure& failure) noexcept;
  // R16 to R21. The result is from the new memory, or from any block that fits.
  Block* Extend(const BfcAsk& ask, Failure& failure) noexcept;
  // Requests less and less, down to `least` bytes.
  Allocation* TakeFromSystem(Request request, std::size_t least,
                             Failure& failure) noexcept;
  // R32, R33: true if idle regions were freed, so that another Extend may
  // succeed.
  bool CollectRegions(std::size_t rounded) noexcept;
  bool HelpsToCollect(std::size_t rounded) const noexcept;  // Hold lock_.
  // Reads the limit from the device, once. False, with `failure`, if that
  // fails.
  bool KnowsLimit(Failure& failure) noexcept;
  void StartPlan(const BfcMemoryLimit& limit, bool is_all_there_is);
  Block* Publish(Allocation* memory, std::unique_ptr<BfcRegion> region,
                 const BfcAsk& ask, RecordStock& supply) noexcept;

  Failure Refusal(Failure::Reason reason, const BfcAsk& ask) const;
  // The Failure of a request for which the limit refuses `needed` bytes.
  Failure LimitRefusal(const BfcAsk& ask, std::size_t needed) const;
  // The flag that sets the limit.
  const char* limit_flag() const {
    return *options_.limit_flag != '\0' ? options_.limit_flag
                                        : pool().limit_flag();
  }
  // Completes `failure`, and records that a memory map is due.
  void NoteRefusal(const Request& request, const BfcAsk& ask,
                   Failure& failure) noexcept;
  void WriteMap() noexcept;  // If one is due.

  // Waits for the work of the streams, if streams_are_all. Memory freed before
  // is then safe, as if the frontier had been set.
  void AwaitStamps() noexcept;
  // Visits idle regions in address order, including those that are idle only
  // after AwaitStamps has waited. Hold lock_.
  template <class Visit>
  void ForEachIdle(const Visit& visit) const;
  // Removes the idle regions that `wants` accepts; linked by `next`, in address
  // order. Hold LockJoined().
  template <class Wants>
  Chunk* DetachIdle(const Wants& wants) noexcept;
  // DetachIdle under the lock; lowers the next growth.
  template <class Wants>
  Chunk* TakeIdle(const Wants& wants) noexcept;
  // Frees detached regions to the system, after the work that used them.
  std::size_t ReturnToSystem(Chunk* regions) noexcept;
  // Frees detached regions: to the system if `is_done`, else to the chunk pool.
  std::size_t FreeRegions(Chunk* regions, bool is_done) noexcept;

  const BfcOptions options_;
  // Work that used memory with a stamp below this count is done (R37).
  std::atomic<std::uint64_t> frontier_{0};
  GrowthTurn turn_;
  bool has_backpedalled_ = false;  // Ever; guarded by turn_.

  mutable SpinLock lock_;
  // All below guarded by lock_. Mutable: callers do not see whether a free
  // block is in the cache or in the index.
  mutable BfcArena arena_;
  BfcGrowthPlan plan_;
  bool knows_limit_ = false;
  bool limit_is_all_ = false;      // The limit is all memory of the device.
  std::size_t leaving_bytes_ = 0;  // Bytes of regions that are being freed.
  std::uint64_t failures_ = 0;
  std::uint64_t met_late_ = 0;  // Requests that the first search did not meet.
  // The request that a memory map is due for, bytes; 0: none.
  std::size_t refused_bytes_ = 0;
  // The request that the last map was written for, bytes; 0 once a request as
  // large was met.
  std::size_t mapped_bytes_ = 0;

  // Reclaimer::Step::kReport; registered if there is a sink.
  Reclaimer::Call map_source_{[this](std::size_t /*bytes*/) {
    WriteMap();
    return std::size_t{0};
  }};
  Reclaimer::Registration map_registration_;
};

// Inline, because it is most of a hit.
inline Block* BfcAllocator::TakeLocked(const BfcAsk& ask) noexcept {
  Block* block = arena_.Take(ask);
  if (block != nullptr && ask.rounded >= mapped_bytes_) mapped_bytes_ = 0;
  return block;
}

template <class Visit>
void BfcAllocator::ForEachIdle(const Visit& visit) const {
  const std::uint64_t frontier = options_.streams_are_all
                                     ? std::numeric_limits<std::uint64_t>::max()
                                     : frontier_.load();
  for (const BfcRegion* region = arena_.first_region(); region != nullptr;
       region = region->next_region()) {
    if (arena_.IsIdle(*region, frontier)) visit(*region);
  }
}

template <class Wants>
Chunk* BfcAllocator::DetachIdle(const Wants& wants) noexcept {
  const std::uint64_t frontier = frontier_.load();
  Chunk* first = nullptr;
  Chunk** last = &first;
  for (BfcRegion* region = arena_.first_region(); region != nullptr;) {
    BfcRegion* next = region->next_region();
    if (arena_.IsIdle(*region, frontier) && wants(*region)) {
      leaving_bytes_ += region->size;
      arena_.RemoveRegion(region);
      *last = region;
      last = &region->next;
    }
    region = next;
  }
  return first;
}

}  // namespace strata

#endif  // STRATA_STRATEGY_BFC_BFC_ALLOCATOR_H_
