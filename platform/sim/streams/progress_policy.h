#ifndef STRATA_PLATFORM_SIM_STREAMS_PROGRESS_POLICY_H_
#define STRATA_PLATFORM_SIM_STREAMS_PROGRESS_POLICY_H_

#include <cstdint>
#include <memory>
#include <string>

#include "strata/platform/sim/streams/stream_set.h"

namespace strata::sim {

// The time at which work in streams runs (the option strata_sim_progress):
//
//   inline  when it is submitted
//   lazy    when a thread waits for it, and only as much as the wait needs;
//           many failed polls in a row count as a wait
//   seeded  some of it after each call, in an order drawn from the seed
//   timed   when the clock of the platform passes the end of its duration
//   manual  when it is stepped, or a thread waits for it; never by polls
enum class ProgressKind { kInline, kLazy, kSeeded, kTimed, kManual };

// Errors: std::invalid_argument that names the option and its values.
ProgressKind ParseProgress(const std::string& text);

// Runs the work of streams.
//
// Threads: externally synchronised, by the lock that is passed on.
class WorkRunner {
 public:
  virtual ~WorkRunner() = default;
  // Runs the first operation of the queue, which is ready. May release the
  // lock; after that `stream` may be destroyed.
  virtual void RunFirst(SimStream* stream, SimLock* lock) = 0;
};

// Decides when work runs, and its order where the order is free.
//
// Threads: externally synchronised, by the lock that is passed on.
class ProgressPolicy {
 public:
  ProgressPolicy(StreamSet* streams, WorkRunner* runner)
      : streams_(streams), runner_(runner) {}
  ProgressPolicy(const ProgressPolicy&) = delete;
  ProgressPolicy& operator=(const ProgressPolicy&) = delete;
  virtual ~ProgressPolicy() = default;

  // True if work that is ready at submission runs in the submitting call.
  virtual bool RunsAtOnce() const { return false; }
  // True if AfterCall has an effect.
  virtual bool MovesAfterCalls() const { return false; }
  virtual void OnNewStream(SimStream* /*stream*/) {}
  virtual void AfterSubmit(SimLock* /*lock*/) {}
  // Called after a call that takes `ns`.
  virtual void AfterCall(std::uint64_t /*ns*/, SimLock* /*lock*/) {}
  // Runs work that brings `point` nearer, which is not reached. Returns false
  // if no work can run now.
  virtual bool MoveTowards(const StreamPoint& point, SimLock* lock);
  // Runs the first operation of the queue of `stream`, which is ready.
  virtual void RunNow(SimStream* stream, SimLock* lock) {
    runner_->RunFirst(stream, lock);
  }
  // True if many failed polls of a stream count as a wait for it.
  virtual bool PollsCountAsWaits() const { return false; }
  // The time of the platform, if it has its own clock.
  virtual std::uint64_t NowNs() const { return 0; }

 protected:
  StreamSet& streams() const { return *streams_; }
  WorkRunner& runner() const { return *runner_; }
  // The ready stream whose first operation was submitted first, or null.
  SimStream* FirstReady() const;

 private:
  StreamSet* const streams_;
  WorkRunner* const runner_;
};

std::unique_ptr<ProgressPolicy> MakeProgress(ProgressKind kind,
                                             std::uint64_t seed,
                                             StreamSet* streams,
                                             WorkRunner* runner);

// Decides whether a call that frees memory at once first waits for the device's
// work (the option strata_sim_free). "sync": it waits, as most drivers do.
// "nosync": it does not; a program must work with this too. "seeded": chosen
// per call.
//
// Threads: externally synchronised.
// Source: cuda_semantics.md H3, H5, D11.
class FreePolicy {
 public:
  // Errors: std::invalid_argument that names the option and its values.
  FreePolicy(const std::string& text, std::uint64_t seed);

  // True if the current call waits.
  bool Waits();

 private:
  enum class Kind { kSync, kNoSync, kSeeded };

  static Kind Parse(const std::string& text);

  const Kind kind_;
  std::uint64_t random_state_;
};

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_STREAMS_PROGRESS_POLICY_H_
