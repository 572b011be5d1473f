#include "strata/platform/sim/streams/scheduler.h"

#include <string>

#include "strata/platform/sim/device/fatal.h"

namespace strata::sim {
namespace {

// Number of polls of one stream without progress after which lazy progress runs
// work, so that a polling loop ends.
constexpr std::uint64_t kPatientPolls = 1000;

}  // namespace

Scheduler::Scheduler(ProgressKind progress, std::uint64_t seed)
    : streams_(progress == ProgressKind::kTimed),
      progress_(MakeProgress(progress, seed, &streams_, this)),
      moves_after_calls_(progress_->MovesAfterCalls()),
      is_timed_(progress == ProgressKind::kTimed) {}

void Scheduler::AddStream(const Stream& stream, StreamKind kind) {
  streams_.Add(stream, kind);
  progress_->OnNewStream(&streams_.At(stream));
}

void Scheduler::SubmitUnlocked(const Stream& stream, std::uint64_t cost_ns,
                               std::function<void(SimLock*)> run,
                               SimLock* lock) {
  Queue(stream, cost_ns, std::move(run));
  RunQueued(lock);
}

void Scheduler::Queue(const Stream& stream, std::uint64_t cost_ns,
                      std::function<void(SimLock*)> run) {
  SimStream& found = streams_.At(stream);
  streams_.Begin(&found);
  streams_.Push(&found, cost_ns, std::move(run));
}

void Scheduler::WaitFor(const Stream& stream, const StreamSnapshot& snapshot) {
  streams_.PushWait(&streams_.At(stream), snapshot.point, &snapshot.clock);
}

StreamSnapshot Scheduler::Submitted(const Stream& stream) const {
  const SimStream& found = streams_.At(stream);
  return {found.Last(), found.clock};
}

bool Scheduler::IsIn(const StreamSnapshot& snapshot,
                     const StreamPoint& point) const {
  const StreamPoint& last = snapshot.point;
  if (point.device == last.device && point.stream_uid == last.stream_uid) {
    return point.count <= last.count;
  }
  // A forgotten stream comes before everything.
  const SimStream* stream = streams_.Find(point);
  return stream == nullptr || snapshot.clock.At(stream->key) >= point.count;
}

std::shared_ptr<std::uint64_t> Scheduler::Watch(const StreamPoint& point) {
  if (streams_.IsDone(point)) return nullptr;
  auto done_ns = std::make_shared<std::uint64_t>(0);
  streams_.Find(point)->watches.emplace_back(point.count, done_ns);
  return done_ns;
}

void Scheduler::Await(StreamPoint point, SimLock* lock) {
  while (!streams_.IsDone(point)) {
    if (progress_->MoveTowards(point, lock)) continue;
    // Each operation waits only for earlier ones. So some remaining operation
    // can start, unless a host function blocks it.
    if (running_ == 0) {
      SimFatal("nothing can run, but stream " +
               std::to_string(point.stream_uid) +
               " of sim:" + std::to_string(point.device) + " has not done " +
               std::to_string(point.count) + " pieces of work");
    }
    ++waiters_;
    completed_.wait(*lock);
    --waiters_;
  }
}

std::vector<StreamPoint> Scheduler::PointsOf(const SimStream& stream) const {
  std::vector<StreamPoint> points;
  if (stream.kind == StreamKind::kLegacy) {
    for (const auto& [key, other] : streams_.busy()) {
      if (other->device == stream.device &&
          other->kind == StreamKind::kBlocking) {
        points.push_back(other->Last());
      }
    }
  }
  points.push_back(stream.Last());
  return points;
}

void Scheduler::AwaitAll(const std::vector<StreamPoint>& points,
                         SimLock* lock) {
  for (const StreamPoint& point : points) Await(point, lock);
}

void Scheduler::AwaitStream(const Stream& stream, SimLock* lock) {
  if (streams_.busy().empty()) return;
  AwaitAll(PointsOf(streams_.At(stream)), lock);
}

void Scheduler::AwaitDevice(std::int32_t device, SimLock* lock) {
  std::vector<StreamPoint> points;
  for (const auto& [key, stream] : streams_.busy()) {
    if (stream->device == device) points.push_back(stream->Last());
  }
  AwaitAll(points, lock);
}

bool Scheduler::Poll(StreamPoint point, SimLock* lock) {
  if (streams_.IsDone(point)) return true;
  if (!progress_->PollsCountAsWaits()) return false;
  SimStream* stream = streams_.Find(point);
  if (++stream->failed_polls >= kPatientPolls) Await(point, lock);
  return streams_.IsDone(point);
}

bool Scheduler::PollStream(const Stream& stream, SimLock* lock) {
  if (streams_.busy().empty()) return true;
  for (const StreamPoint& point : PointsOf(streams_.At(stream))) {
    if (!Poll(point, lock)) return false;
  }
  return true;
}

bool Scheduler::Step(const Stream& stream, SimLock* lock) {
  SimStream* next = NextOf(&streams_.At(stream));
  if (next == nullptr) return false;
  progress_->RunNow(next, lock);
  return true;
}

// The stream with the next operation to run, so that `stream` makes progress:
// `stream` itself, or a stream of a graph that it waits for. Null if there is
// none.
SimStream* Scheduler::NextOf(SimStream* stream) const {
  if (streams_.IsReady(*stream)) return stream;
  if (stream->queue.empty()) return nullptr;
  SimStream* next = streams_.NextTowards(
      {stream->device, stream->uid, stream->completed + 1});
  const bool of_graph = next != nullptr && next->kind == StreamKind::kGraph;
  return of_graph ? next : nullptr;
}

std::uint64_t Scheduler::PendingCount(std::int32_t device) const {
  std::uint64_t count = 0;
  for (const auto& [key, stream] : streams_.busy()) {
    if (stream->device == device) count += stream->queue.size();
  }
  return count;
}

void Scheduler::RunFirst(SimStream* stream, SimLock* lock) {
  Operation& operation = stream->queue.front();
  operation.running = true;
  ++running_;
  // The stream is not destroyed while the operation runs, because its queue is
  // not empty.
  const std::function<void(SimLock*)> run = std::move(operation.run);
  run(lock);
  --running_;
  streams_.Complete(stream, progress_->NowNs());
  if (waiters_ > 0) completed_.notify_all();
}

}  // namespace strata::sim
