#include "strata/platform/sim/streams/stream_set.h"

#include <algorithm>
#include <utility>

namespace strata::sim {
namespace {

// There are fewer than 256 devices, and uids count from 1.
std::uint64_t KeyOf(std::int32_t device, std::uint64_t uid) {
  return uid << 8 | static_cast<std::uint64_t>(device);
}

}  // namespace

void StreamSet::Add(const Stream& stream, StreamKind kind) {
  auto added = std::make_unique<SimStream>();
  added->device = stream.device;
  added->uid = stream.uid;
  added->key = KeyOf(stream.device, stream.uid);
  added->kind = kind;
  DeviceStreams& device = devices_[stream.device];
  added->on_device = &device;
  if (kind == StreamKind::kLegacy) device.legacy = added.get();
  if (kind == StreamKind::kBlocking) device.blocking.push_back(added.get());
  streams_.emplace(added->key, std::move(added));
}

void StreamSet::Destroy(const Stream& stream) {
  SimStream& found = At(stream);
  found.destroyed = true;
  ForgetIfOver(&found);
}

SimStream& StreamSet::At(const Stream& stream) const {
  const std::uint64_t key = KeyOf(stream.device, stream.uid);
  // A call looks up its stream several times.
  if (last_found_ == nullptr || last_found_->key != key) {
    last_found_ = streams_.find(key)->second.get();
  }
  return *last_found_;
}

SimStream* StreamSet::Find(const StreamPoint& point) const {
  const auto found = streams_.find(KeyOf(point.device, point.stream_uid));
  return found == streams_.end() ? nullptr : found->second.get();
}

bool StreamSet::Begin(SimStream* stream) {
  waits_.clear();
  if (stream->kind == StreamKind::kLegacy) {
    BeginLegacy(stream);
  } else if (stream->kind == StreamKind::kBlocking) {
    BeginBlocking(stream);
  }
  stream->changed = ++ticks_;
  return stream->queue.empty() && waits_.empty();
}

void StreamSet::BeginLegacy(SimStream* stream) {
  const DeviceStreams& device = *stream->on_device;
  for (const SimStream* blocking : device.blocking) {
    if (blocking->changed < stream->changed) continue;
    JoinAll(*blocking, &stream->clock);
    WaitUnlessDone(blocking->Last());
  }
  stream->clock.Join(device.retired);
}

void StreamSet::BeginBlocking(SimStream* stream) {
  if (!IsBehind(*stream)) return;
  const SimStream& legacy = *stream->on_device->legacy;
  JoinAll(legacy, &stream->clock);
  WaitUnlessDone(legacy.Last());
}

void StreamSet::WaitUnlessDone(const StreamPoint& point) {
  if (!IsDone(point)) waits_.push_back(point);
}

void StreamSet::JoinAll(const SimStream& from, VectorClock* clock) {
  clock->Join(from.clock);
  clock->Raise(from.key, from.submitted);
}

void StreamSet::JoinLive(const VectorClock& from, VectorClock* clock) {
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::uint64_t key = from.KeyOf(i);
    if (streams_.count(key) == 1) clock->Raise(key, from.At(key));
  }
}

void StreamSet::Push(SimStream* stream, std::uint64_t cost_ns,
                     std::function<void(SimLock*)> run) {
  Operation operation;
  operation.cost_ns = cost_ns;
  operation.waits = waits_;
  operation.run = std::move(run);
  operation.number = ticks_;
  ++stream->submitted;
  if (stream->queue.empty()) busy_.emplace(stream->key, stream);
  stream->queue.push_back(std::move(operation));
}

void StreamSet::PushWait(SimStream* stream, const StreamPoint& point,
                         const VectorClock* clock) {
  Begin(stream);
  if (clock != nullptr) JoinLive(*clock, &stream->clock);
  const SimStream* other = Find(point);
  if (other != nullptr && other != stream) {
    stream->clock.Raise(other->key, point.count);
    WaitUnlessDone(point);
  }
  if (stream->queue.empty() && waits_.empty()) {
    Pass(stream, 0);
  } else {
    Push(stream, 0, nullptr);
  }
}

void StreamSet::Complete(SimStream* stream, std::uint64_t now_ns) {
  now_ns_ = now_ns;
  Pop(stream);
  ForgetIfOver(stream);
  Settle();
}

void StreamSet::Pop(SimStream* stream) {
  stream->on_device->worked_ns += stream->queue.front().cost_ns;
  stream->queue.pop_front();
  ++stream->completed;
  stream->failed_polls = 0;
  auto& watches = stream->watches;
  while (!watches.empty() && watches.front().first <= stream->completed) {
    *watches.front().second = TimeOf(*stream);
    watches.pop_front();
  }
  if (stream->queue.empty()) busy_.erase(stream->key);
}

void StreamSet::Settle() {
  bool moved = true;
  while (moved) {
    moved = false;
    for (auto next = busy_.begin(); next != busy_.end();) {
      SimStream* stream = (next++)->second;
      if (stream->queue.front().running || stream->queue.front().run) continue;
      if (!AreDone(stream->queue.front().waits)) continue;
      Pop(stream);
      ForgetIfOver(stream);
      moved = true;
    }
  }
}

void StreamSet::ForgetIfOver(SimStream* stream) {
  if (!stream->destroyed || !stream->queue.empty()) return;
  DeviceStreams& device = *stream->on_device;
  if (stream->kind == StreamKind::kBlocking) {
    device.retired.Join(stream->clock);
    device.retired_changed = ++ticks_;
    device.blocking.erase(
        std::find(device.blocking.begin(), device.blocking.end(), stream));
  }
  const std::uint64_t key = stream->key;
  if (last_found_ == stream) last_found_ = nullptr;
  streams_.erase(key);
  if (++forgotten_ > streams_.size()) SweepClocks();
}

void StreamSet::SweepClocks() {
  forgotten_ = 0;
  const auto is_gone = [this](std::uint64_t key) {
    return streams_.find(key) == streams_.end();
  };
  for (const auto& [key, stream] : streams_) stream->clock.ForgetIf(is_gone);
  for (auto& [ordinal, device] : devices_) device.retired.ForgetIf(is_gone);
}

StreamPoint StreamSet::Last(SimStream* stream) {
  if (IsBehind(*stream)) PushWait(stream, StreamPoint(), nullptr);
  return stream->Last();
}

void StreamSet::Snapshot(SimStream* stream, StreamSnapshot* snapshot) {
  snapshot->point = Last(stream);
  snapshot->clock = stream->clock;
}

bool StreamSet::IsDone(const StreamPoint& point) const {
  if (point.count == 0) return true;
  const SimStream* stream = Find(point);
  return stream == nullptr || stream->completed >= point.count;
}

bool StreamSet::IsBehind(const SimStream& stream) const {
  if (stream.kind == StreamKind::kNonBlocking ||
      stream.kind == StreamKind::kGraph) {
    return false;
  }
  const DeviceStreams& device = *stream.on_device;
  if (stream.kind == StreamKind::kBlocking) {
    return device.legacy->changed > stream.changed;
  }
  return device.retired_changed > stream.changed ||
         std::any_of(device.blocking.begin(), device.blocking.end(),
                     [&stream](const SimStream* blocking) {
                       return blocking->changed > stream.changed;
                     });
}

bool StreamSet::IsBefore(const StreamPoint& point,
                         const SimStream& stream) const {
  const SimStream* earlier = Find(point);
  if (point.count == 0 || earlier == nullptr || earlier == &stream) return true;
  const auto covers = [&](const SimStream& by) {
    return &by == earlier || by.clock.At(earlier->key) >= point.count;
  };
  if (covers(stream)) return true;
  if (!IsBehind(stream)) return false;
  const DeviceStreams& device = *stream.on_device;
  if (stream.kind == StreamKind::kBlocking) return covers(*device.legacy);
  return device.retired.At(earlier->key) >= point.count ||
         std::any_of(device.blocking.begin(), device.blocking.end(),
                     [&](const SimStream* blocking) {
                       return blocking->changed > stream.changed &&
                              covers(*blocking);
                     });
}

bool StreamSet::AreDone(const std::vector<StreamPoint>& points) const {
  return std::all_of(
      points.begin(), points.end(),
      [this](const StreamPoint& point) { return IsDone(point); });
}

bool StreamSet::IsReady(const SimStream& stream) const {
  return !stream.queue.empty() && !stream.queue.front().running &&
         AreDone(stream.queue.front().waits);
}

SimStream* StreamSet::NextTowards(StreamPoint point) const {
  while (true) {
    SimStream* stream = Find(point);
    if (stream == nullptr || stream->queue.empty()) return nullptr;
    const Operation& first = stream->queue.front();
    if (first.running) return nullptr;
    const auto wait =
        std::find_if(first.waits.begin(), first.waits.end(),
                     [this](const StreamPoint& p) { return !IsDone(p); });
    if (wait == first.waits.end()) return stream;
    // The path ends: an operation waits only for operations submitted before
    // it. So no stream is visited twice.
    point = *wait;
  }
}

}  // namespace strata::sim
