#ifndef STRATA_STRATEGY_STREAM_VIEW_H_
#define STRATA_STRATEGY_STREAM_VIEW_H_

#include <cstddef>
#include <memory>

#include "strata/allocation/decorator.h"
#include "strata/allocation/hit_path.h"
#include "strata/allocation/streams/deferred_frees.h"
#include "strata/platform/biased_lock.h"
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
// Cost: where nothing is parked, a hit that takes the strategy's lock below its
//   own; else a walk, and two uncontended locks more. See ParkedFrees.
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
  // Of use while nothing is parked.
  HitPath* hit_path() override { return below_ != nullptr ? this : nullptr; }

 private:
  // HitPath.
  BiasedLock* hit_lock() override { return &lock_; }
  Block* TakeCached(std::size_t bytes) noexcept override;
  bool GiveCached(Block* block) noexcept override;
  bool finds_all() const noexcept override { return false; }

  // Whether what is given back goes to the strategy at once.
  bool IsDirect() const noexcept {
    return parked_ == nullptr ||
           (!share_->stream().timeline()->during_capture() &&
            (frees_->waits_on_device() || !order_->several()));
  }
  // Parked, or by the strategy.
  Allocation* Take(const Request& request, Failure& failure) noexcept;
  Allocation* TakeFromStrategy(const Request& request,
                               Failure& failure) noexcept;

  HitPath* const below_;  // the strategy's; null if it has none
  const std::shared_ptr<SharedOrder> order_;
  const std::shared_ptr<SharedOrder::Share> share_;
  const std::shared_ptr<DeferredFrees> frees_;
  const std::shared_ptr<ParkedFrees> parked_;  // null: nothing is parked
  mutable BiasedLock lock_;
  Stats stats_;  // guarded by lock_
};

}  // namespace strata

#endif  // STRATA_STRATEGY_STREAM_VIEW_H_
