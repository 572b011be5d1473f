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
#include "strata/strategy/shared/busy_frees.h"
#include "strata/strategy/shared/shared_order.h"

namespace strata {

// One stream's view of a strategy that all streams of a place share. Callers
// use it like a strategy of the stream's own.
//
// Model: memory from the view is ready for work of its stream. Freed memory may
//   still be in use by that work.
//   - One stream of the place in use, or the place waits on the device: frees
//     go to the strategy at once, and SharedOrder makes other streams wait.
//   - Several streams: frees wait for the work of the stream (BusyFrees). The
//     stream itself can reuse them at once. A miss of any stream gives the
//     strategy the blocks that need no more wait. Instead of failing, a miss
//     gives it all blocks that the device can wait for.
//   - A stream forbids waits (StreamsWithoutWaits): its blocks wait until the
//     host has seen its work done, and its requests never wait on the device.
//   - Captures are announced: all frees wait, because a capturing stream cannot
//     be waited for.
//   Counters are those of this stream. The strategy's own stats() include
//   blocks that wait.
// Threads: any thread, if the strategy allows that.
// Cost: a hit acquires a second lock, of the frees or of the strategy, while it
//   holds its own. One free in 64 takes the full path.
// Source: DESIGN §4 ("What is shared").
class StreamView final : public Decorator, private HitPath {
 public:
  // `frees` belongs to the place. Null, or a stream without timeline: no free
  // waits.
  StreamView(std::shared_ptr<Allocator> strategy,
             std::shared_ptr<SharedOrder> order,
             std::shared_ptr<ChainStream> stream,
             std::shared_ptr<DeferredFrees> frees = nullptr);
  ~StreamView() override;

  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override;
  void DoFree(Allocation* allocation) noexcept override;
  // First waits for the deferred blocks of the place.
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

  bool IsDuringCapture() const noexcept {
    return busy_ != nullptr && timeline_->during_capture();
  }
  // Whether frees go to the strategy at once. A stream that forbids waits could
  // not be ordered after them.
  bool IsDirect() const noexcept {
    if (busy_ == nullptr) return true;
    if (timeline_->during_capture()) return false;
    return !order_->several() ||
           (waits_on_device_ && !timeline_->some_forbid_waits());
  }
  Block* TakeBelow(std::size_t bytes) noexcept;
  // Allocates from the strategy; as a last resort after it refused. Call
  // without a lock.
  Allocation* TakeFromStrategy(const Request& request,
                               Failure& failure) noexcept;
  Allocation* TakeAtLast(const Request& request, Failure& failure) noexcept;

  HitPath* const below_;  // Hit path of the strategy; null if it has none.
  const std::shared_ptr<SharedOrder> order_;
  const std::shared_ptr<SharedOrder::Share> share_;
  const std::shared_ptr<DeferredFrees> frees_;
  StreamTimeline* const timeline_;  // Timeline of the stream; null: none.
  const bool waits_on_device_;
  const std::shared_ptr<BusyFrees> busy_;  // Null: no free waits.
  ChainLock& lock_{*hit_lock()};
  // Guarded by lock_:
  UseCounts uses_;
  std::uint64_t failures_ = 0;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_SHARED_STREAM_VIEW_H_
