#ifndef STRATA_STRATEGY_STREAM_VIEW_H_
#define STRATA_STRATEGY_STREAM_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "strata/allocation/chain_lock.h"
#include "strata/allocation/decorator.h"
#include "strata/allocation/hit_path.h"
#include "strata/allocation/streams/deferred_frees.h"
#include "strata/allocation/usage.h"
#include "strata/strategy/parked_frees.h"
#include "strata/strategy/shared_order.h"

namespace strata {

// One stream's view of a strategy that all streams of a place share: it looks
// like a strategy of the stream's own.
//
// Model: memory from the view is ready for work in its stream; memory given
//   back may still be in use there. While one stream of the place is in use,
//   frees go to the strategy at once. With several, they are parked: the stream
//   itself has them again at once, and the strategy once its work is done; a
//   miss of any stream drains. Where nothing can be parked, or the place waits
//   on the device, they go to the strategy all the same, and SharedOrder has
//   others wait. While captures are announced all are parked: a stream that
//   captures could not be waited for. Counters are those of this stream; what
//   the strategy holds, parked blocks too, is in its own stats().
// Threads: any thread, if the strategy is.
// Cost: while one stream is in use, its lock is the strategy's, too. With
//   several, a hit takes that of the strategy below its own unless something
//   parked fits, and one free in 64 walks. See ParkedFrees.
// Source: DESIGN §4 ("What is shared").
class StreamView final : public Decorator, private HitPath {
 public:
  // `frees` is the place's; null, or a stream without timeline: nothing is
  // parked. `biased_lock`: whether a thread may own the lock of a hit.
  StreamView(std::shared_ptr<Allocator> strategy,
             std::shared_ptr<SharedOrder> order,
             std::shared_ptr<ChainStream> stream,
             std::shared_ptr<DeferredFrees> frees = nullptr,
             bool biased_lock = false);
  ~StreamView() override;

  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override;
  void DoFree(Allocation* allocation) noexcept override;
  // Waits for what is parked first.
  std::size_t Release() noexcept override;
  Stream stream() const override { return share_->stream().stream(); }
  const char* name() const override { return "stream_view"; }
  Stats stats() const override;
  void ResetPeak() override;
  // Of use from the stream's first request on, but not while captures are
  // announced.
  HitPath* hit_path() override { return below_ != nullptr ? this : nullptr; }

 private:
  // HitPath.
  Block* TakeCached(std::size_t bytes) noexcept override;
  bool GiveCached(Block* block) noexcept override;
  bool finds_all() const noexcept override { return false; }

  // Whether captures are announced, where that matters.
  bool IsDuringCapture() const noexcept {
    return parked_ != nullptr && timeline_->during_capture();
  }
  // Whether what is given back is parked also while no capture is announced.
  bool ParksAll() const noexcept {
    return parked_ != nullptr && !waits_on_device_ && order_->several();
  }
  // Whether what is given back goes to the strategy at once.
  bool IsDirect() const noexcept {
    return parked_ == nullptr || (!timeline_->during_capture() &&
                                  (waits_on_device_ || !order_->several()));
  }
  // Whether lock_ is all that a hit of the strategy needs.
  bool IsLockEnough() const noexcept {
    return shared_lock_ != nullptr
               ? shared_lock_->IsLentTo(lock_)  // from the first request on
               : locks_by_itself_ && order_->IsActive(*share_);
  }
  // Hold lock_, here and below. Whether it is enough, and nothing is parked or
  // would be.
  bool IsAlone() const noexcept;
  // From the strategy, whose lock is held.
  Block* TakeBelow(std::size_t bytes) noexcept;
  // Of a hit, unless the stream is alone.
  Block* TakeAmongOthers(std::size_t bytes) noexcept;
  bool GiveAmongOthers(Block* block) noexcept;

  // Has lock_ lent the strategy's, as long as no other stream is in use.
  void ShareLock() noexcept;
  // Parked, or by the strategy; without a lock.
  Allocation* Take(const Request& request, Failure& failure) noexcept;
  Allocation* TakeFromStrategy(const Request& request,
                               Failure& failure) noexcept;

  HitPath* const below_;         // the strategy's; null if it has none
  LentLock* const shared_lock_;  // of below_; null: it cannot be lent
  const bool locks_by_itself_;   // whether a hit of below_ does
  const std::shared_ptr<SharedOrder> order_;
  const std::shared_ptr<SharedOrder::Share> share_;
  const std::shared_ptr<DeferredFrees> frees_;
  StreamTimeline* const timeline_;  // of the stream; null: none
  const bool waits_on_device_;
  ChainLock& lock_{hit_state()->lock};
  // Guarded by lock_:
  UseCounts uses_;
  std::uint64_t failures_ = 0;
  // Null: nothing is parked. The last one to be made, as it asks the view for
  // its counts from then on.
  const std::shared_ptr<ParkedFrees> parked_;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_STREAM_VIEW_H_
