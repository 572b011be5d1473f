#ifndef STRATA_PLATFORM_SIM_SCHEDULER_H_
#define STRATA_PLATFORM_SIM_SCHEDULER_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "strata/platform/sim/progress_policy.h"
#include "strata/platform/sim/stream_order.h"
#include "strata/platform/sim/stream_set.h"

namespace strata {

// Takes the work that is submitted to the streams of a platform and sees to it
// that each piece runs after all that it has to wait for.
//
// Model: the order is that of StreamSet, the moment is up to ProgressPolicy.
// Work
//   runs in the threads that call: those that submit, wait, poll or step.
// Threads: externally synchronised, by the platform's mutex, which the lock
//   that is passed on holds. Work may release it while it runs (host
//   functions); who needs that work then waits until it has run.
class Scheduler final : public StreamOrder, private WorkRunner {
 public:
  Scheduler(ProgressKind progress, std::uint64_t seed);

  void AddStream(const Stream& stream, StreamKind kind);
  // What was submitted still runs.
  void DestroyStream(const Stream& stream) { streams_.Destroy(stream); }

  // Submits `run`, which takes no lock and takes `cost_ns` of device time.
  template <class Run>
  void Submit(const Stream& stream, std::uint64_t cost_ns, Run run,
              SimLock* lock) {
    SimStream& found = streams_.At(stream);
    if (streams_.Begin(&found) && progress_->RunsAtOnce()) {
      // Nothing is queued, so that inline progress allocates nothing.
      streams_.Pass(&found);
      run();
      return;
    }
    streams_.Push(&found, cost_ns,
                  [run = std::move(run)](SimLock* /*lock*/) mutable { run(); });
    progress_->AfterSubmit(lock);
  }
  // Whether work that is submitted now is certainly done when Submit returns.
  bool RunsAtOnce() const {
    return progress_->RunsAtOnce() && streams_.busy().empty();
  }
  // Submits work that releases the lock while it runs.
  void SubmitUnlocked(const Stream& stream, std::uint64_t cost_ns,
                      std::function<void(SimLock*)> run, SimLock* lock);
  // Submits work as the above does, but runs nothing: RunQueued follows, after
  // more of the kind, so that many pieces in many streams are submitted as one.
  void Queue(const Stream& stream, std::uint64_t cost_ns,
             std::function<void(SimLock*)> run);
  void RunQueued(SimLock* lock) { progress_->AfterSubmit(lock); }
  // Whether `stream` is ordered with its device's legacy stream.
  bool IsBlocking(const Stream& stream) const {
    return streams_.At(stream).kind == StreamKind::kBlocking;
  }
  // What was submitted to `stream` so far.
  void Snapshot(const Stream& stream, StreamSnapshot* snapshot) {
    streams_.Snapshot(&streams_.At(stream), snapshot);
  }
  // The same, but for what the legacy rule will add to later work.
  StreamSnapshot Submitted(const Stream& stream) const;
  // Whether the work up to `point` is part of `snapshot`.
  bool IsIn(const StreamSnapshot& snapshot, const StreamPoint& point) const;
  // Where the time at which `point` is done will be. Null if it is done, or
  // progress is not timed.
  std::shared_ptr<std::uint64_t> Watch(const StreamPoint& point);
  // Makes what is submitted to `stream` from now on start after `snapshot`.
  void WaitFor(const Stream& stream, const StreamSnapshot& snapshot);

  StreamPoint Last(const Stream& stream) const override;
  bool IsBefore(const StreamPoint& point, const Stream& stream) const override;
  bool IsDone(const StreamPoint& point) const override;
  void Wait(const Stream& stream, const StreamPoint& point) override;

  // Return when all that was submitted before the call is done. A legacy stream
  // stands for the blocking streams of its device too.
  void Await(StreamPoint point, SimLock* lock);
  void AwaitStream(const Stream& stream, SimLock* lock);
  void AwaitDevice(std::int32_t device, SimLock* lock);
  // Whether it is done: as the above, but without waiting for it.
  bool Poll(StreamPoint point, SimLock* lock);
  bool PollStream(const Stream& stream, SimLock* lock);

  // Runs the first piece of work of `stream` and returns true, unless there is
  // none or it has to wait for work in another stream. If that is a graph that
  // was launched in `stream`, runs a piece of it.
  bool Step(const Stream& stream, SimLock* lock);

  // After a call that took `ns`, with no lock held by the caller.
  bool moves_after_calls() const { return moves_after_calls_; }
  void AfterCall(std::uint64_t ns, SimLock* lock) {
    progress_->AfterCall(ns, lock);
  }
  // Pieces of work on `device` that are not done, waits included.
  std::uint64_t PendingCount(std::int32_t device) const;
  // The time of the platform; 0 unless progress is timed. Takes no lock.
  std::uint64_t NowNs() const { return progress_->NowNs(); }

 private:
  void RunFirst(SimStream* stream, SimLock* lock) override;
  SimStream* NextOf(SimStream* stream) const;
  std::vector<StreamPoint> PointsOf(const SimStream& stream) const;
  void AwaitAll(const std::vector<StreamPoint>& points, SimLock* lock);

  mutable StreamSet streams_;  // Last may have to add what the point is about
  const std::unique_ptr<ProgressPolicy> progress_;
  const bool moves_after_calls_;
  std::condition_variable completed_;  // something ran while somebody waits
  int waiters_ = 0;                    // of completed_
  int running_ = 0;                    // pieces of work that run now
};

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_SCHEDULER_H_
