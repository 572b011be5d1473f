#ifndef STRATA_STRATEGY_SHARED_STREAM_VIEW_H_
#define STRATA_STRATEGY_SHARED_STREAM_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "strata/allocation/decorator.h"
#include "strata/allocation/hit/chain_lock.h"
#include "strata/allocation/hit/hit_path.h"
#include "strata/allocation/hit/usage.h"
#include "strata/allocation/streams/deferred_frees.h"
#include "strata/strategy/shared/parked_frees.h"
#include "strata/strategy/shared/shared_order.h"

namespace strata {

// One stream's view of a strategy that all streams of a place share. Callers
// use it like a strategy of the stream's own.
//
// Model: memory from the view is ready for work of its stream. Freed memory may
//   still be in use by that work.
//   - One stream of the place in use: frees go to the strategy at once.
//   - Several streams: frees are parked. The stream itself can reuse them at
//     once; the strategy gets them when the stream's work is done. A miss of
//     any stream drains them.
//   - Nothing can be parked, or the place waits on the device: frees go to the
//     strategy at once, and SharedOrder makes other streams wait.
//   - Captures are announced: all frees are parked, because a capturing stream
//     cannot be waited for.
//   Counters are those of this stream. The strategy's own stats() include
//   parked blocks.
// Threads: any thread, if the strategy allows that.
// Cost: while one stream is in use, its lock is also the strategy's. With
//   several, a hit acquires the strategy's lock while it holds its own, unless
//   a parked block fits; one free in 64 takes the full path. See ParkedFrees.
// Source: DESIGN §4 ("What is shared").
class StreamView final : public Decorator, private HitPath {
 public:
  // `frees` belongs to the place. Null, or a stream without timeline: nothing
  // is parked. `biased_lock`: whether a thread may own the lock of a hit.
  StreamView(std::shared_ptr<Allocator> strategy,
             std::shared_ptr<SharedOrder> order,
             std::shared_ptr<ChainStream> stream,
             std::shared_ptr<DeferredFrees> frees = nullptr,
             bool biased_lock = false);
  ~StreamView() override;

  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override;
  void DoFree(Allocation* allocation) noexcept override;
  // First waits for the parked blocks.
  std::size_t Release() noexcept override;
  Stream stream() const override { return share_->stream().stream(); }
  const char* name() const override { return "stream_view"; }
  Stats stats() const override;
  void ResetPeak() override;
  // Serves requests from the stream's first request on, but not while captures
  // are announced.
  HitPath* hit_path() override { return below_ != nullptr ? this : nullptr; }

 private:
  // HitPath.
  Block* TakeCached(std::size_t bytes) noexcept override;
  bool GiveCached(Block* block) noexcept override;
  bool finds_all() const noexcept override { return false; }

  // Whether captures are announced, if blocks may be parked.
  bool IsDuringCapture() const noexcept {
    return parked_ != nullptr && timeline_->during_capture();
  }
  // Whether frees are parked even while no capture is announced.
  bool ParksAll() const noexcept {
    return parked_ != nullptr && !waits_on_device_ && order_->several();
  }
  // Whether frees go to the strategy at once.
  bool IsDirect() const noexcept {
    return parked_ == nullptr || (!timeline_->during_capture() &&
                                  (waits_on_device_ || !order_->several()));
  }
  // Whether a hit of the strategy needs no lock but lock_.
  bool IsLockEnough() const noexcept {
    return shared_lock_ != nullptr
               ? shared_lock_->IsLentTo(lock_)  // From the first request on.
               : locks_by_itself_ && order_->IsActive(*share_);
  }
  // Hold lock_, here and below. Whether lock_ is enough, nothing is parked, and
  // no free would be.
  bool IsAlone() const noexcept;
  // Allocates from the strategy. Hold the strategy's lock.
  Block* TakeBelow(std::size_t bytes) noexcept;
  // Hits, unless the stream is alone.
  Block* TakeAmongOthers(std::size_t bytes) noexcept;
  bool GiveAmongOthers(Block* block) noexcept;

  // Lends the strategy's lock to lock_ while no other stream is in use.
  void ShareLock() noexcept;
  // Allocates a parked block, or from the strategy. Call without a lock.
  Allocation* Take(const Request& request, Failure& failure) noexcept;
  Allocation* TakeFromStrategy(const Request& request,
                               Failure& failure) noexcept;

  HitPath* const below_;  // Hit path of the strategy; null if it has none.
  LentLock* const shared_lock_;  // Lock of below_; null: it cannot be lent.
  const bool locks_by_itself_;   // Whether a hit of below_ locks by itself.
  const std::shared_ptr<SharedOrder> order_;
  const std::shared_ptr<SharedOrder::Share> share_;
  const std::shared_ptr<DeferredFrees> frees_;
  StreamTimeline* const timeline_;  // Timeline of the stream; null: none.
  const bool waits_on_device_;
  ChainLock& lock_{hit_state()->lock};
  // Guarded by lock_:
  UseCounts uses_;
  std::uint64_t failures_ = 0;
  // Null: nothing is parked. Constructed last, because it reads the counts of
  // the view from then on.
  const std::shared_ptr<ParkedFrees> parked_;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_SHARED_STREAM_VIEW_H_
