#ifndef STRATA_PLATFORM_SIM_PROGRESS_POLICY_H_
#define STRATA_PLATFORM_SIM_PROGRESS_POLICY_H_

#include <cstdint>
#include <memory>
#include <string>

#include "strata/platform/sim/stream_set.h"

namespace strata {

// When work in streams runs (the option strata_sim_progress):
//
//   inline  when it is submitted
//   lazy    when somebody waits for it, and then no more than that needs; a
//           poll that fails again and again counts as waiting in the end
//   seeded  some of it after each call, in an order drawn from the seed
//   timed   when the clock of the platform passes the time that it takes
//   manual  when it is told to, or somebody waits for it; never by polls
enum class ProgressKind { kInline, kLazy, kSeeded, kTimed, kManual };

// Errors: std::invalid_argument naming the option and the kinds there are.
ProgressKind ParseProgress(const std::string& text);

// Runs work of streams.
//
// Threads: externally synchronised, by the lock that is passed on.
class WorkRunner {
 public:
  virtual ~WorkRunner() = default;
  // Runs the first of the queue, which is ready. May release the lock, after
  // which `stream` may be gone.
  virtual void RunFirst(SimStream* stream, SimLock* lock) = 0;
};

// Decides when work runs and in which order, as far as that is free.
//
// Threads: externally synchronised, by the lock that is passed on.
class ProgressPolicy {
 public:
  ProgressPolicy(StreamSet* streams, WorkRunner* runner)
      : streams_(streams), runner_(runner) {}
  ProgressPolicy(const ProgressPolicy&) = delete;
  ProgressPolicy& operator=(const ProgressPolicy&) = delete;
  virtual ~ProgressPolicy() = default;

  // Whether work that is ready when it is submitted runs there and then.
  virtual bool RunsAtOnce() const { return false; }
  // Whether AfterCall does anything.
  virtual bool MovesAfterCalls() const { return false; }
  virtual void OnNewStream(SimStream* /*stream*/) {}
  virtual void AfterSubmit(SimLock* /*lock*/) {}
  // After a call that takes `ns`.
  virtual void AfterCall(std::uint64_t /*ns*/, SimLock* /*lock*/) {}
  // Runs something that brings `point` nearer, which is not reached. Returns
  // false if nothing can be run now.
  virtual bool MoveTowards(const StreamPoint& point, SimLock* lock);
  // Runs the first of the queue of `stream`, which is ready.
  virtual void RunNow(SimStream* stream, SimLock* lock) {
    runner_->RunFirst(stream, lock);
  }
  // Whether somebody who was told often enough that the stream is not ready is
  // taken to wait for it.
  virtual bool PollsCountAsWaits() const { return false; }
  // The time of the platform, if it has one of its own.
  virtual std::uint64_t NowNs() const { return 0; }

 protected:
  StreamSet& streams() const { return *streams_; }
  WorkRunner& runner() const { return *runner_; }
  // The ready stream whose first work was submitted first, or null.
  SimStream* FirstReady() const;

 private:
  StreamSet* const streams_;
  WorkRunner* const runner_;
};

std::unique_ptr<ProgressPolicy> MakeProgress(ProgressKind kind,
                                             std::uint64_t seed,
                                             StreamSet* streams,
                                             WorkRunner* runner);

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_PROGRESS_POLICY_H_
