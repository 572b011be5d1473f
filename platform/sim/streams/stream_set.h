#ifndef STRATA_PLATFORM_SIM_STREAMS_STREAM_SET_H_
#define STRATA_PLATFORM_SIM_STREAMS_STREAM_SET_H_

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

#include "strata/platform/sim/streams/stream_order.h"
#include "strata/platform/sim/streams/vector_clock.h"
#include "strata/platform/stream.h"

namespace strata::sim {

// The platform's mutex, held.
using SimLock = std::unique_lock<std::mutex>;

// One operation in a stream. An operation without `run` completes as soon as
// its waits are reached.
struct Operation {
  std::uint64_t cost_ns = 0;       // duration once it has started
  std::vector<StreamPoint> waits;  // besides earlier work of its stream
  // May release the lock and acquire it again; empty: nothing to run.
  std::function<void(SimLock*)> run;
  std::uint64_t number = 0;  // rises with each submission to the platform
  bool running = false;      // a thread runs it, with or without the lock
  bool started = false;      // under timed progress: it occupies a slot
};

// kGraph: a lane of an instantiated graph, not visible to callers.
enum class StreamKind { kLegacy, kBlocking, kNonBlocking, kGraph };

struct DeviceStreams;

// The work submitted to a stream, and its progress.
struct SimStream {
  std::int32_t device = -1;
  std::uint64_t uid = 0;
  std::uint64_t key = 0;  // unique on the platform; rises with creation
  StreamKind kind = StreamKind::kNonBlocking;
  // The streams of the device, for the order with the legacy stream.
  DeviceStreams* on_device = nullptr;
  bool destroyed = false;  // but its work is not complete yet
  std::uint64_t submitted = 0;
  std::uint64_t completed = 0;
  std::uint64_t changed = 0;    // the set's tick when work was last submitted
  VectorClock clock;            // other streams' work before the next operation
  std::deque<Operation> queue;  // submitted and not completed
  // Variables that receive the time (StreamSet::TimeOf) at which a number of
  // operations is complete, in rising order of the number.
  std::deque<std::pair<std::uint64_t, std::shared_ptr<std::uint64_t>>> watches;
  std::uint64_t failed_polls = 0;  // since its last completion
  std::uint64_t priority = 0;      // under seeded progress: higher runs first

  StreamPoint Last() const { return {device, uid, submitted}; }
};

// The streams of one device to which the legacy rule applies, and the time that
// work took in all of its streams.
struct DeviceStreams {
  SimStream* legacy = nullptr;
  std::vector<SimStream*> blocking;
  VectorClock retired;  // the work before the work of forgotten streams
  std::uint64_t retired_changed = 0;  // the tick of its last growth
  std::uint64_t worked_ns = 0;  // sum of the costs of completed operations
};

// The work submitted to a stream up to some moment, and all work before it.
struct StreamSnapshot {
  StreamPoint point;
  VectorClock clock;
};

// The streams of all devices of a platform: their queues, the points that each
// operation waits for, and the order of the work.
//
// Model: each stream is first in, first out. Work in a device's legacy stream
//   waits for all earlier work of its blocking streams, and their later work
//   waits for it (cuda_semantics.md S3). Clocks follow §5.4. The effect of the
//   legacy stream on a blocking stream enters its clock with its next work. The
//   completed work of a destroyed stream comes before all later submissions, so
//   nothing is stored about it.
// Threads: externally synchronised.
// Cost: a submission visits the stream only; in a legacy stream, each blocking
//   stream of the device. A completion visits each busy stream.
class StreamSet {
 public:
  // `has_clock`: Complete receives the time of a clock.
  explicit StreamSet(bool has_clock = false) : has_clock_(has_clock) {}
  StreamSet(const StreamSet&) = delete;
  StreamSet& operator=(const StreamSet&) = delete;

  void Add(const Stream& stream, StreamKind kind);
  void Destroy(const Stream& stream);
  // `stream` was added and is not destroyed.
  SimStream& At(const Stream& stream) const;
  // Null if no work is left before `point`.
  SimStream* Find(const StreamPoint& point) const;

  // Orders a new operation in `stream` after all points that it has to wait
  // for. Returns true if all are reached; otherwise waits() holds the others.
  bool Begin(SimStream* stream);
  const std::vector<StreamPoint>& waits() const { return waits_; }
  // The operation of the last Begin: complete at once (Pass), or queued (Push).
  // Only a queued operation without `run` can complete others.
  void Pass(SimStream* stream, std::uint64_t cost_ns) {
    ++stream->submitted;
    ++stream->completed;
    stream->on_device->worked_ns += cost_ns;
  }
  void Push(SimStream* stream, std::uint64_t cost_ns,
            std::function<void(SimLock*)> run);
  // Queues an operation without `run` that waits for `point`; `clock` is the
  // clock of `point`.
  void PushWait(SimStream* stream, const StreamPoint& point,
                const VectorClock* clock);
  // The first operation of the queue is complete at `now_ns`. Also completes
  // operations without `run` that waited for it.
  void Complete(SimStream* stream, std::uint64_t now_ns);
  // The time of work in `stream`: the time of the last Complete. Without a
  // clock, the time that the completed work of its device took, one operation
  // after another.
  std::uint64_t TimeOf(const SimStream& stream) const {
    return has_clock_ ? now_ns_ : stream.on_device->worked_ns;
  }

  // All work submitted to `stream` so far, including the work that the legacy
  // rule adds.
  StreamPoint Last(SimStream* stream);
  void Snapshot(SimStream* stream, StreamSnapshot* snapshot);
  bool IsDone(const StreamPoint& point) const;
  bool IsBefore(const StreamPoint& point, const SimStream& stream) const;

  // True if the first operation of the queue can run now.
  bool IsReady(const SimStream& stream) const;
  // The stream whose first operation must run next to reach `point`. Null if
  // that operation is running or was never submitted.
  SimStream* NextTowards(StreamPoint point) const;
  // Streams with incomplete work, by key.
  const std::map<std::uint64_t, SimStream*>& busy() const { return busy_; }

 private:
  void BeginLegacy(SimStream* stream);
  void BeginBlocking(SimStream* stream);
  void WaitUnlessDone(const StreamPoint& point);
  void JoinAll(const SimStream& from, VectorClock* clock);
  void JoinLive(const VectorClock& from, VectorClock* clock);
  // True if the legacy rule orders work before the next work of `stream` that
  // is not in its clock.
  bool IsBehind(const SimStream& stream) const;
  bool AreDone(const std::vector<StreamPoint>& points) const;
  void Pop(SimStream* stream);
  void Settle();
  void ForgetIfOver(SimStream* stream);
  // Removes forgotten streams from all clocks. Until then, the entry of a
  // forgotten stream in a clock has no meaning.
  void SweepClocks();

  const bool has_clock_;
  std::unordered_map<std::uint64_t, std::unique_ptr<SimStream>> streams_;
  mutable SimStream* last_found_ = nullptr;  // an element of streams_, or null
  std::unordered_map<std::int32_t, DeviceStreams> devices_;
  std::map<std::uint64_t, SimStream*> busy_;
  std::vector<StreamPoint> waits_;  // of the operation of the last Begin
  std::uint64_t ticks_ = 0;         // increases with each submission
  std::uint64_t now_ns_ = 0;        // of the last Complete
  std::size_t forgotten_ = 0;       // streams since the last sweep
};

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_STREAMS_STREAM_SET_H_
