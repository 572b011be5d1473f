#ifndef STRATA_FACADE_GRAPH_POOLS_H_
#define STRATA_FACADE_GRAPH_POOLS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "strata/allocation/failure.h"
#include "strata/allocation/reclaimer.h"
#include "strata/allocation/streams/capture_gate.h"
#include "strata/allocation/streams/capture_hold.h"
#include "strata/allocation/streams/timeline_table.h"
#include "strata/facade/graph_pool.h"
#include "strata/platform/device.h"
#include "strata/platform/function_ref.h"
#include "strata/platform/stream.h"

namespace strata {

// The graph pools of a facade, and which capture allocates from which.
//
// Model: a capture is announced with the pool it is to use, before or after it
//   begins. It is known by its id, which every stream that takes part in it
//   has, so that forked streams and other threads find the same pool while
//   everybody else goes on outside. An announcement that names no stream is for
//   the first capture that nobody else announced. The gate stays open until
//   each announced capture was seen to have ended.
//   A pool lives until everybody who prepared it has removed it and its last
//   graph is gone; one that ends while captures are under way waits for them,
//   as memory may not go back to the system meanwhile.
// Threads: any thread.
// Cost: nothing while no capture is announced; then one device call per
// request. Source: DESIGN §5; cuda_semantics.md C10, C29, C31; paddle.md §3.8.
class GraphPools final : public CaptureHolds {
 public:
  explicit GraphPools(std::shared_ptr<TimelineTable> timelines);

  const CaptureGate& gate() const { return timelines_->gate(); }

  // One more that needs the pool; makes it if it is not there. 0 or less: a new
  // id. Returns the id.
  GraphPoolId Prepare(GraphPoolId id);
  // One less. The last one ends the pool, once its graphs are gone.
  //
  // Errors: std::invalid_argument if nobody has prepared it.
  void Remove(GraphPoolId id);
  // The same for whoever has prepared it and could not go on.
  void Release(GraphPoolId id) noexcept;
  // Errors: std::invalid_argument if there is no such pool.
  std::shared_ptr<GraphPool> Get(GraphPoolId id) const;

  // The capture of `stream` (of any stream, if it has no uid), which is under
  // way or about to begin, uses the pool.
  //
  // Returns the number of the announcement.
  //
  // Errors: std::logic_error if the pool or the stream is announced already;
  //   std::invalid_argument if there is no such pool.
  std::uint64_t Announce(GraphPoolId id, const Stream& stream);
  // That capture is over, or never began. Ignored if it was withdrawn already.
  void Withdraw(std::uint64_t announcement) noexcept;
  // The same for the capture that is announced for the pool, unless it is under
  // way: then it is another one.
  //
  // Errors: std::invalid_argument if there is no such pool.
  void CaptureEnded(GraphPoolId id);
  // Withdraws what was announced on `device` and is over: it began and ended,
  // or its stream has. Whether that was any: what waited for it is for Sweep.
  bool CloseEnded(Device& device) noexcept;
  // The graph keeps the pool alive, through a user object that instances of it
  // share, until its last launch is over.
  //
  // Errors: the device's; kNotSupported if it has no user objects.
  Status Retain(GraphPoolId id, Device& device, Graph graph);

  // The pool of the capture that `stream` takes part in. Null, and no failure:
  // it takes part in none. Null and a failure: it may not allocate.
  // `may_be_gone` as in AddHoldsOf.
  std::shared_ptr<GraphPool> Route(Device& device, const Stream& stream,
                                   Failure& failure,
                                   bool may_be_gone = false) noexcept;
  void AddHoldsOf(Device& device, const Stream& stream, std::uint64_t own,
                  std::vector<std::shared_ptr<CaptureHold>>& holds,
                  bool may_be_gone) override;

  // Ends what waits for captures to be over, and pools whose last graph is
  // gone. Nothing while a capture is announced.
  void Sweep() noexcept;
  // Calls each device that has graphs of pools without users, then sweeps. The
  // driver reports the end of a graph in a thread of its own, which may need
  // the call, or may come later. Returns whether such pools are left.
  bool AskAndSweep() noexcept;
  // Steps at exhaustion: AskAndSweep, and the same after a wait for the devices
  // where pools without users have graphs.
  ReclaimSource& ask_step() { return ask_step_; }
  ReclaimSource& await_step() { return await_step_; }
  // Withdraws everything and forgets every pool: the facade goes away.
  void Close() noexcept;

 private:
  struct Entry {
    std::shared_ptr<GraphPool> pool;
    int references = 0;
  };
  struct Announced {
    Stream stream;              // uid 0: not known yet
    std::uint64_t capture = 0;  // 0: not known yet
    std::shared_ptr<GraphPool> pool;
    std::uint64_t number = 0;  // of the announcement
  };
  struct Ticket;
  class Step final : public ReclaimSource {
   public:
    Step(GraphPools& pools, bool waits) : pools_(pools), waits_(waits) {}
    // It goes to the system once its pool has ended.
    std::size_t ReclaimableBytes(bool /*of_limit*/) const noexcept override {
      return 0;
    }
    std::size_t Reclaim(Stream /*stream*/,
                        std::size_t bytes) noexcept override {
      return pools_.EndUnused(waits_) ? bytes : 0;
    }

   private:
    GraphPools& pools_;
    const bool waits_;
  };

  // At exhaustion. Whether a pool has ended, or something that waited for
  // captures to be over. With `waits`, after a wait for the devices.
  bool EndUnused(bool waits) noexcept;
  // Calls `ask` with each device that has, or had, graphs of these pools.
  void ForEachGraphDevice(FunctionRef<void(Device&)> ask) const noexcept;
  std::uint64_t Enter(GraphPoolId id, const Stream& stream);
  // Whether it began and ended, or its stream has. One device call.
  bool IsOver(const Announced& seen) const noexcept;
  // Withdraws the first that is meant. False if none is.
  template <class Predicate>
  bool WithdrawIf(Predicate is_meant) noexcept;
  static void OnGraphGone(void* argument);
  static std::atomic<Ticket*>& GoneGraphs();
  // The pool announced for the capture, by id or by asking the streams that
  // were announced.
  std::shared_ptr<GraphPool> PoolOf(const Stream& stream,
                                    std::uint64_t capture);
  const std::shared_ptr<TimelineTable> timelines_;
  mutable std::mutex mutex_;
  std::map<GraphPoolId, Entry> pools_;  // guarded by mutex_
  std::vector<Announced> announced_;    // guarded by mutex_
  std::uint64_t announcements_ = 0;     // ever; guarded by mutex_
  // Pools that everybody has removed and graphs keep.
  const std::shared_ptr<std::atomic<std::size_t>> unused_ =
      std::make_shared<std::atomic<std::size_t>>(0);
  // By ordinal: whether graphs of these pools were made on the device.
  std::unique_ptr<std::atomic<bool>[]> has_graphs_;
  Step ask_step_{*this, /*waits=*/false};
  Step await_step_{*this, /*waits=*/true};
};

}  // namespace strata

#endif  // STRATA_FACADE_GRAPH_POOLS_H_
