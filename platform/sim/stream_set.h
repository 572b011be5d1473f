#ifndef STRATA_PLATFORM_SIM_STREAM_SET_H_
#define STRATA_PLATFORM_SIM_STREAM_SET_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "strata/platform/sim/stream_order.h"
#include "strata/platform/sim/vector_clock.h"
#include "strata/platform/stream.h"

namespace strata {

// The platform's mutex, held.
using SimLock = std::unique_lock<std::mutex>;

// A piece of work in a stream. One that does not run anything is done as soon
// as what it waits for is.
struct Operation {
  std::uint64_t cost_ns = 0;       // how long it takes once it has started
  std::vector<StreamPoint> waits;  // besides the earlier work of its stream
  // May release the lock and take it again; empty: nothing to run.
  std::function<void(SimLock*)> run;
  std::uint64_t number = 0;  // rises with each submission to the platform
  bool running = false;      // somebody runs it, with or without the lock
  bool started = false;      // under timed progress: it has a slot
};

// kGraph: a lane of an instantiated graph, which callers know nothing of.
enum class StreamKind { kLegacy, kBlocking, kNonBlocking, kGraph };

struct DeviceStreams;

// What a stream has been given and how far it is.
struct SimStream {
  std::int32_t device = -1;
  std::uint64_t uid = 0;
  std::uint64_t key = 0;  // unique on the platform; rises with creation
  StreamKind kind = StreamKind::kNonBlocking;
  DeviceStreams* on_device = nullptr;  // all that the legacy rule is about
  bool destroyed = false;              // but its work is not done yet
  std::uint64_t submitted = 0;
  std::uint64_t completed = 0;
  std::uint64_t changed = 0;    // the set's tick when work was last submitted
  VectorClock clock;            // other streams' work before what comes next
  std::deque<Operation> queue;  // submitted and not completed
  // Where to write the time at which so many are completed; rising.
  std::deque<std::pair<std::uint64_t, std::shared_ptr<std::uint64_t>>> watches;
  std::uint64_t failed_polls = 0;  // since it last completed something
  std::uint64_t priority = 0;      // under seeded progress: higher runs first

  StreamPoint Last() const { return {device, uid, submitted}; }
};

// Streams of one device that the legacy rule is about.
struct DeviceStreams {
  SimStream* legacy = nullptr;
  std::vector<SimStream*> blocking;
  VectorClock retired;  // what came before the work of forgotten ones
  std::uint64_t retired_changed = 0;  // the tick at which it last grew
};

// What had been submitted to a stream at some moment, and all before it.
struct StreamSnapshot {
  StreamPoint point;
  VectorClock clock;
};

// The streams of all devices of a platform: their queues, what each piece of
// work waits for, and which work comes before which.
//
// Model: first in, first out in a stream. Work in a device's legacy stream
//   waits for all earlier work of its blocking streams, and later work of those
//   waits for it (cuda_semantics.md S3). Clocks follow §5.4; the effect of the
//   legacy stream on a blocking one enters its clock with its next work. The
//   work of a stream that was destroyed and has done everything comes before
//   all that is submitted from then on, so nothing is kept about it.
// Threads: externally synchronised.
// Cost: submitting looks at the stream alone, or, in a legacy stream, at each
//   blocking stream of the device. Completing looks at each busy stream.
class StreamSet {
 public:
  StreamSet() = default;
  StreamSet(const StreamSet&) = delete;
  StreamSet& operator=(const StreamSet&) = delete;

  void Add(const Stream& stream, StreamKind kind);
  void Destroy(const Stream& stream);
  // `stream` was added and is not destroyed.
  SimStream& At(const Stream& stream) const;
  // Null: nothing is left to do before `point`.
  SimStream* Find(const StreamPoint& point) const;

  // Orders a new piece of work in `stream` after all that it has to wait for.
  // Returns whether all of it is done; what is not is left in waits().
  bool Begin(SimStream* stream);
  const std::vector<StreamPoint>& waits() const { return waits_; }
  // The piece of work that Begin was called for: done at once, or queued. Only
  // work without `run` can complete others by being queued.
  void Pass(SimStream* stream) {
    ++stream->submitted;
    ++stream->completed;
  }
  void Push(SimStream* stream, std::uint64_t cost_ns,
            std::function<void(SimLock*)> run);
  // A piece of work without `run` after `point`, which `clock` is before.
  void PushWait(SimStream* stream, const StreamPoint& point,
                const VectorClock* clock);
  // The first of the queue is done at `now_ns`, and with it work that does not
  // run.
  void Complete(SimStream* stream, std::uint64_t now_ns);

  // All that was submitted to `stream` so far, including what the legacy rule
  // adds.
  StreamPoint Last(SimStream* stream);
  void Snapshot(SimStream* stream, StreamSnapshot* snapshot);
  bool IsDone(const StreamPoint& point) const;
  bool IsBefore(const StreamPoint& point, const SimStream& stream) const;

  // Whether the first of the queue can run now.
  bool IsReady(const SimStream& stream) const;
  // The stream whose first piece of work has to run next so that `point` is
  // reached, or null if that is running or was never submitted.
  SimStream* NextTowards(StreamPoint point) const;
  // Streams with work to do, by key.
  const std::map<std::uint64_t, SimStream*>& busy() const { return busy_; }

 private:
  void BeginLegacy(SimStream* stream);
  void BeginBlocking(SimStream* stream);
  void WaitUnlessDone(const StreamPoint& point);
  void JoinAll(const SimStream& from, VectorClock* clock);
  void JoinLive(const VectorClock& from, VectorClock* clock);
  // Whether the legacy rule orders work before `stream`'s next that is not in
  // its clock.
  bool IsBehind(const SimStream& stream) const;
  bool AreDone(const std::vector<StreamPoint>& points) const;
  void Pop(SimStream* stream);
  void Settle();
  void ForgetIfOver(SimStream* stream);
  // Takes forgotten streams out of all clocks. Until then, the entry of a
  // forgotten stream in a clock has no meaning.
  void SweepClocks();

  std::unordered_map<std::uint64_t, std::unique_ptr<SimStream>> streams_;
  mutable SimStream* last_found_ = nullptr;  // one of streams_, or null
  std::unordered_map<std::int32_t, DeviceStreams> devices_;
  std::map<std::uint64_t, SimStream*> busy_;
  std::vector<StreamPoint> waits_;  // of the work that Begin was called for
  std::uint64_t ticks_ = 0;         // rises with each submission
  std::uint64_t now_ns_ = 0;        // of the last Complete
  std::size_t forgotten_ = 0;       // streams since the last sweep
};

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_STREAM_SET_H_
