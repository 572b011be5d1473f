#ifndef STRATA_STRATEGY_STREAM_VIEW_H_
#define STRATA_STRATEGY_STREAM_VIEW_H_

#include <memory>

#include "strata/allocation/decorator.h"
#include "strata/platform/spin_lock.h"
#include "strata/strategy/shared_order.h"

namespace strata {

// One stream's view of a strategy that all streams of a place share: it looks
// like a strategy of the stream's own.
//
// Model: memory from the view is ready for work in its stream; memory given
//   back may still be in use there. SharedOrder makes both true. Counters are
//   those of this stream; what the strategy holds is in its own stats().
// Threads: any thread, if the strategy is.
// Cost: a walk, two atomic operations and one uncontended lock above the
//   strategy's; see SharedOrder when several streams are in use.
class StreamView final : public Decorator {
 public:
  StreamView(std::shared_ptr<Allocator> strategy,
             std::shared_ptr<SharedOrder> order,
             std::shared_ptr<ChainStream> stream);

  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override;
  void DoFree(Allocation* allocation) noexcept override;
  Stream stream() const override { return share_->stream().stream(); }
  const char* name() const override { return "stream_view"; }
  Stats stats() const override;
  void ResetPeak() override;
  // Every free has to be noted.
  HitPath* hit_path() override { return nullptr; }

 private:
  const std::shared_ptr<SharedOrder> order_;
  const std::shared_ptr<SharedOrder::Share> share_;
  mutable SpinLock lock_;
  Stats stats_;  // guarded by lock_
};

}  // namespace strata

#endif  // STRATA_STRATEGY_STREAM_VIEW_H_
