#ifndef STRATA_PLATFORM_SIM_STREAMS_SCHEDULER_H_
#define STRATA_PLATFORM_SIM_STREAMS_SCHEDULER_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "strata/platform/sim/streams/progress_policy.h"
#include "strata/platform/sim/streams/stream_order.h"
#include "strata/platform/sim/streams/stream_set.h"

namespace strata::sim {

// Accepts the work that is submitted to the streams of a platform, and runs
// each operation after the operations that it waits for.
//
// Model: StreamSet determines the order, ProgressPolicy the time. Work runs in
//   the calling threads: those that submit, wait, poll or step.
// Threads: externally synchronised by the platform's mutex, which the passed
//   lock holds. Work may release the mutex while it runs (host functions); a
//   thread that needs that work then waits until it has run.
class Scheduler final : public StreamOrder, private WorkRunner {
 public:
  Scheduler(ProgressKind progress, std::uint64_t seed);

  void AddStream(const Stream& stream, StreamKind kind);
  // Work that was submitted to the stream still runs.
  void DestroyStream(const Stream& stream) { streams_.Destroy(stream); }

  // Submits `run`, which acquires no lock and takes `cost_ns` of device time.
  template <class Run>
  void Submit(const Stream& stream, std::uint64_t cost_ns, Run run,
              SimLock* lock) {
    SimStream& found = streams_.At(stream);
    if (streams_.Begin(&found) && progress_->RunsAtOnce()) {
      // Nothing is queued, so that inline progress allocates nothing.
      streams_.Pass(&found, cost_ns);
      run();
      return;
    }
    streams_.Push(&found, cost_ns,
                  [run = std::move(run)](SimLock* /*lock*/) mutable { run(); });
    progress_->AfterSubmit(lock);
  }
  // True if work that is submitted now is certainly complete when Submit
  // returns.
  bool RunsAtOnce() const {
    return progress_->RunsAtOnce() && streams_.busy().empty();
  }
  // Submits work that releases the lock while it runs.
  void SubmitUnlocked(const Stream& stream, std::uint64_t cost_ns,
                      std::function<void(SimLock*)> run, SimLock* lock);
  // Submits work like SubmitUnlocked, but runs nothing. RunQueued follows,
  // after further calls. So many operations in many streams are submitted as
  // one.
  void Queue(const Stream& stream, std::uint64_t cost_ns,
             std::function<void(SimLock*)> run);
  void RunQueued(SimLock* lock) { progress_->AfterSubmit(lock); }
  // True if `stream` is ordered with its device's legacy stream.
  bool IsBlocking(const Stream& stream) const {
    return streams_.At(stream).kind == StreamKind::kBlocking;
  }
  // The work submitted to `stream` so far.
  void Snapshot(const Stream& stream, StreamSnapshot* snapshot) {
    streams_.Snapshot(&streams_.At(stream), snapshot);
  }
  // Like Snapshot, without the work that the legacy rule adds to later work.
  StreamSnapshot Submitted(const Stream& stream) const;
  // True if the work up to `point` is part of `snapshot`.
  bool IsIn(const StreamSnapshot& snapshot, const StreamPoint& point) const;
  // The variable that will hold the time at which `point` completes: WorkedNs,
  // or NowNs if progress is timed. Null if it is complete.
  std::shared_ptr<std::uint64_t> Watch(const StreamPoint& point);
  // The time that the completed work of the device took, one operation after
  // another.
  std::uint64_t WorkedNs(const Stream& stream) const {
    return streams_.At(stream).on_device->worked_ns;
  }
  // Work submitted to `stream` from now on starts after `snapshot`.
  void WaitFor(const Stream& stream, const StreamSnapshot& snapshot);

  StreamPoint Last(const Stream& stream) const override {
    return streams_.Last(&streams_.At(stream));
  }
  bool IsBefore(const StreamPoint& point, const Stream& stream) const override {
    return streams_.IsBefore(point, streams_.At(stream));
  }
  bool IsDone(const StreamPoint& point) const override {
    return streams_.IsDone(point);
  }
  void Wait(const Stream& stream, const StreamPoint& point) override {
    streams_.PushWait(&streams_.At(stream), point, nullptr);
  }

  // Return when all work that was submitted before the call is complete. A
  // legacy stream includes the blocking streams of its device.
  void Await(StreamPoint point, SimLock* lock);
  void AwaitStream(const Stream& stream, SimLock* lock);
  void AwaitDevice(std::int32_t device, SimLock* lock);
  // Like Await and AwaitStream, but return at once: true if the work is
  // complete.
  bool Poll(StreamPoint point, SimLock* lock);
  bool PollStream(const Stream& stream, SimLock* lock);

  // Runs the first operation of `stream` and returns true. Returns false if
  // there is none or if it waits for another stream. If the operation is a
  // launched graph, runs one operation of the graph.
  bool Step(const Stream& stream, SimLock* lock);

  // Called after a call that took `ns`; the caller holds no lock.
  bool moves_after_calls() const { return moves_after_calls_; }
  void AfterCall(std::uint64_t ns, SimLock* lock) {
    progress_->AfterCall(ns, lock);
  }
  // Number of incomplete operations on `device`, including waits.
  std::uint64_t PendingCount(std::int32_t device) const;
  bool is_timed() const { return is_timed_; }
  // The time of the platform; 0 unless progress is timed. Acquires no lock.
  std::uint64_t NowNs() const { return progress_->NowNs(); }

 private:
  void RunFirst(SimStream* stream, SimLock* lock) override;
  SimStream* NextOf(SimStream* stream) const;
  std::vector<StreamPoint> PointsOf(const SimStream& stream) const;
  void AwaitAll(const std::vector<StreamPoint>& points, SimLock* lock);

  mutable StreamSet streams_;  // Last may add an operation for its point
  const std::unique_ptr<ProgressPolicy> progress_;
  const bool moves_after_calls_;
  const bool is_timed_;
  std::condition_variable completed_;  // notified after each operation
  int waiters_ = 0;                    // threads that wait for completed_
  int running_ = 0;                    // operations that run now
};

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_STREAMS_SCHEDULER_H_
