#ifndef STRATA_FACADE_GRAPHS_GRAPH_POOLS_H_
#define STRATA_FACADE_GRAPHS_GRAPH_POOLS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "strata/allocation/failure.h"
#include "strata/allocation/reclaim/reclaimer.h"
#include "strata/allocation/streams/capture_gate.h"
#include "strata/allocation/streams/capture_hold.h"
#include "strata/allocation/streams/timeline_table.h"
#include "strata/base/function_ref.h"
#include "strata/facade/graphs/captured_alloc.h"
#include "strata/facade/graphs/graph_pool.h"
#include "strata/platform/device.h"
#include "strata/platform/stream.h"

namespace strata {

// The graph pools of a facade, and the mapping from captures to pools.
//
// Model: each capture is announced with its pool, before or after it begins. A
//   capture is identified by its id, which all its streams report. So forked
//   streams and other threads find the same pool, while other work is not
//   affected. An announcement without a stream is for the first capture without
//   another announcement. The gate counts each announced capture until its end
//   was seen.
//   A pool lives until all its users have removed it and its last graph is
//   gone. A pool that ends while captures are under way waits for them, because
//   memory may not return to the system meanwhile.
// Threads: any thread.
// Cost: nothing while no capture is announced; then one device call per
//   request.
// Source: DESIGN §5; cuda_semantics.md C10, C29, C31; paddle.md §3.8.
class GraphPools final : public CaptureHolds, public CapturedAlloc {
 public:
  explicit GraphPools(std::shared_ptr<TimelineTable> timelines);

  const CaptureGate& gate() const { return timelines_->gate(); }

  // Adds a user to the pool; creates it if it does not exist. 0 or less:
  // assigns a new id. Returns the id.
  GraphPoolId Prepare(GraphPoolId id);
  // Removes a user. The last one ends the pool, once its graphs are gone.
  //
  // Errors: std::invalid_argument if the pool has no user.
  void Remove(GraphPoolId id);
  // As Remove, for a caller that failed after Prepare.
  void Release(GraphPoolId id) noexcept;
  // Errors: std::invalid_argument if there is no such pool.
  std::shared_ptr<GraphPool> Get(GraphPoolId id) const;

  // Announces the capture of `stream`, or of any stream if it has no uid: it
  // uses the pool. Returns the number of the announcement.
  //
  // Errors: std::logic_error if the pool or the stream is announced already;
  //   std::invalid_argument if there is no such pool.
  std::uint64_t Announce(GraphPoolId id, const Stream& stream);
  // Ends the announcement: the capture has ended, or never began. Ignored if it
  // was withdrawn already.
  void Withdraw(std::uint64_t announcement) noexcept;
  // Withdraws the capture that is announced for the pool, unless it is under
  // way or the device cannot say so.
  //
  // Errors: std::invalid_argument if there is no such pool.
  void CaptureEnded(GraphPoolId id);
  // Withdraws the announcements on `device` for captures or streams that have
  // ended. Returns whether there was one; then call Sweep for the work that
  // waited for it.
  bool CloseEnded(Device& device) noexcept;
  // Lets the graph hold the pool, through a user object that all its instances
  // share, until its last launch completes.
  //
  // Errors: the device's; kNotSupported if it has no user objects.
  Status Retain(GraphPoolId id, Device& device, Graph graph);

  // The pool of the capture that `stream` takes part in. Null without a
  // failure: it takes part in none. Null with a failure: it may not allocate.
  // `may_be_gone` as in AddHoldsOf.
  std::shared_ptr<GraphPool> Route(Device& device, const Stream& stream,
                                   Failure& failure,
                                   bool may_be_gone = false) noexcept;
  Allocation* TryAllocate(const std::shared_ptr<PlaceState>& place,
                          const Stream& stream, const Request& request,
                          Failure& failure,
                          bool* is_captured) noexcept override;
  void AddHoldsOf(Device& device, const Stream& stream, std::uint64_t own,
                  std::vector<std::shared_ptr<CaptureHold>>& holds,
                  bool may_be_gone) override;

  // Ends the objects that waited for captures to end, and pools whose last
  // graph is gone. Does nothing while a capture is announced.
  void Sweep() noexcept;
  // Calls the devices with graphs of pools without users, because a driver may
  // report the end of a graph only then. Sweeps. Returns whether such pools are
  // left.
  bool AskAndSweep() noexcept;
  Reclaimer::Source& ask_step() override { return ask_step_; }
  Reclaimer::Source& await_step() override { return await_step_; }
  // Withdraws all announcements and removes all pools: the facade is being
  // destroyed.
  void Close() noexcept;

 private:
  struct Entry {
    std::shared_ptr<GraphPool> pool;
    int references = 0;
  };
  struct Announced {
    Stream stream;  // uid 0: unknown
    // Whether the stream was learned from a request: it may be a fork, which
    // can end before its capture.
    bool is_learned = false;
    std::uint64_t capture = 0;  // 0: unknown yet
    std::shared_ptr<GraphPool> pool;
    std::uint64_t number = 0;  // number of the announcement
  };
  struct Ticket;
  // Returns whether a pool, or a postponed object, has ended. With `waits`,
  // waits for the devices first.
  bool EndUnused(bool waits) noexcept;
  void ForEachGraphDevice(FunctionRef<void(Device&)> ask) const noexcept;
  std::uint64_t Enter(GraphPoolId id, const Stream& stream);
  // Whether its capture or its stream has ended. One device call.
  bool IsOver(const Announced& seen, bool* is_there) const noexcept;
  // The stream of the announcement has ended, but its capture has not.
  void ForgetStream(const Announced& seen) noexcept;
  // Withdraws the first announcement that `is_meant`. False if there is none.
  template <class Predicate>
  bool WithdrawIf(Predicate is_meant) noexcept;
  static void OnGraphGone(void* argument);
  // The tickets of graphs that the driver reported as gone, linked.
  static std::atomic<Ticket*>& GoneGraphs();
  // The pool announced for the capture: by its id, or by the announced streams.
  std::shared_ptr<GraphPool> PoolOf(const Stream& stream,
                                    std::uint64_t capture);
  // The pool of `announced`, which learns `stream` if it has none. Hold mutex_.
  static const std::shared_ptr<GraphPool>& PoolWith(Announced& announced,
                                                    const Stream& stream);
  const std::shared_ptr<TimelineTable> timelines_;
  mutable std::mutex mutex_;
  std::map<GraphPoolId, Entry> pools_;  // guarded by mutex_
  std::vector<Announced> announced_;    // guarded by mutex_
  std::uint64_t announcements_ = 0;  // announcements so far; guarded by mutex_
  // Number of pools that all users have removed and graphs hold.
  const std::shared_ptr<std::atomic<std::size_t>> unused_ =
      std::make_shared<std::atomic<std::size_t>>(0);
  // Per device ordinal: whether graphs of these pools were made on the device.
  std::unique_ptr<std::atomic<bool>[]> has_graphs_;
  Reclaimer::Call ask_step_{[this](std::size_t bytes) {
    return EndUnused(/*waits=*/false) ? bytes : 0;
  }};
  Reclaimer::Call await_step_{[this](std::size_t bytes) {
    return EndUnused(/*waits=*/true) ? bytes : 0;
  }};
};

}  // namespace strata

#endif  // STRATA_FACADE_GRAPHS_GRAPH_POOLS_H_
