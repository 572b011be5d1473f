#include "strata/platform/check/happens_before.h"

#include <algorithm>
#include <utility>

#include "strata/platform/stream.h"

namespace strata::check {
namespace {

// Number of idle components that the creation of a stream checks.
constexpr std::size_t kComponentsTried = 8;

}  // namespace

bool HappensBefore::IsLegacy(const StreamName& stream) {
  return stream.uid == kLegacyStreamUid;
}

std::uint64_t HappensBefore::KeyOf(const StreamName& stream) {
  if (!IsLegacy(stream)) return stream.uid;
  // The legacy streams of all devices have one uid. Other uids count up from 2,
  // and from 2^63 for threads on a GPU, so that they never reach the largest
  // values.
  return ~static_cast<std::uint64_t>(stream.device);
}

HappensBefore::Stream& HappensBefore::Find(const StreamName& stream) {
  const auto found = streams_.find(KeyOf(stream));
  if (found != streams_.end()) return found->second;
  return Add(stream, true, Idle{components_++, 0});
}

HappensBefore::Stream& HappensBefore::Add(const StreamName& stream,
                                          bool blocking, const Idle& idle) {
  Stream fresh;
  fresh.name = stream;
  fresh.blocking = blocking;
  fresh.component = idle.component;
  fresh.count = idle.count;
  fresh.first = idle.count;
  return streams_.insert_or_assign(KeyOf(stream), std::move(fresh))
      .first->second;
}

HappensBefore::Idle HappensBefore::TakeComponent(const OrderClock& creator) {
  const std::size_t tried = std::min(kComponentsTried, idle_.size());
  for (std::size_t i = 0; i < tried; ++i) {
    const Idle found = idle_[i];
    if (!creator.Covers({found.component, found.count})) continue;
    idle_.erase(idle_.begin() + static_cast<std::ptrdiff_t>(i));
    return found;
  }
  return Idle{components_++, 0};
}

void HappensBefore::CreateStream(const StreamName& stream, bool blocking,
                                 std::uint64_t thread) {
  const OrderClock& creator = threads_[thread].clock;
  Add(stream, blocking, TakeComponent(creator)).clock.Join(creator);
}

void HappensBefore::WrapStream(const StreamName& stream, bool blocking) {
  if (streams_.count(KeyOf(stream)) != 0) return;
  Add(stream, blocking, Idle{components_++, 0});
}

void HappensBefore::DestroyStream(const StreamName& stream) {
  const auto found = streams_.find(KeyOf(stream));
  if (found == streams_.end()) return;
  const Stream& gone = found->second;
  Retired& retired = retired_[stream.device];
  retired.all.Join(gone.clock);
  if (gone.blocking) retired.blocking.Join(gone.clock);
  idle_.push_back({gone.component, gone.count});
  streams_.erase(found);
}

void HappensBefore::JoinThread(Thread& thread, const OrderClock& clock) {
  if (thread.clock.Join(clock)) ++thread.version;
}

void HappensBefore::Enter(Stream& stream, std::uint64_t thread) {
  const Thread& from = threads_[thread];
  if (stream.thread != thread || stream.thread_version != from.version) {
    stream.clock.Join(from.clock);
    stream.thread = thread;
    stream.thread_version = from.version;
  }
  JoinLegacyRule(stream, &stream.clock);
}

void HappensBefore::JoinLegacyRule(const Stream& stream, OrderClock* clock) {
  if (IsLegacy(stream.name)) {
    JoinBlocking(stream.name.device, clock);
  } else if (stream.blocking) {
    const auto legacy =
        streams_.find(KeyOf({stream.name.device, kLegacyStreamUid}));
    if (legacy != streams_.end()) clock->Join(legacy->second.clock);
  }
}

void HappensBefore::JoinBlocking(std::int32_t device, OrderClock* clock) {
  clock->Join(retired_[device].blocking);
  for (const auto& [key, stream] : streams_) {
    if (stream.blocking && stream.name.device == device) {
      clock->Join(stream.clock);
    }
  }
}

Epoch HappensBefore::Submit(const StreamName& stream, std::uint64_t thread) {
  Stream& to = Find(stream);
  Enter(to, thread);
  to.clock.Raise(to.component, ++to.count);
  return {to.component, to.count};
}

Epoch HappensBefore::Last(const StreamName& stream) {
  const Stream& of = Find(stream);
  return {of.component, of.count == of.first ? 0 : of.count};
}

Epoch HappensBefore::LastBefore(std::uint64_t event, const StreamName& stream) {
  const Stream& of = Find(stream);
  const auto found = events_.find(event);
  if (found == events_.end()) return {of.component, 0};
  const std::uint64_t count = found->second.At(of.component);
  return {of.component, count <= of.first ? 0 : count};
}

const OrderClock& HappensBefore::OfStream(const StreamName& stream) {
  return Find(stream).clock;
}

OrderClock HappensBefore::BeforeNext(const StreamName& stream,
                                     std::uint64_t thread) {
  const Stream& of = Find(stream);
  OrderClock clock = of.clock;
  clock.Join(threads_[thread].clock);
  JoinLegacyRule(of, &clock);
  return clock;
}

const OrderClock& HappensBefore::OfThread(std::uint64_t thread) {
  return threads_[thread].clock;
}

void HappensBefore::Record(std::uint64_t event, const StreamName& stream,
                           std::uint64_t thread) {
  Stream& from = Find(stream);
  Enter(from, thread);
  events_[event] = from.clock;
}

void HappensBefore::Record(std::uint64_t event, OrderClock clock) {
  events_[event] = std::move(clock);
}

void HappensBefore::Wait(const StreamName& stream, std::uint64_t event,
                         std::uint64_t thread) {
  Stream& to = Find(stream);
  JoinEvent(event, &to.clock);
  Enter(to, thread);
}

void HappensBefore::JoinEvent(std::uint64_t event, OrderClock* clock) const {
  const auto found = events_.find(event);
  if (found != events_.end()) clock->Join(found->second);
}

void HappensBefore::Order(const StreamName& stream, const OrderClock& clock) {
  Find(stream).clock.Join(clock);
}

void HappensBefore::AwaitStream(const StreamName& stream,
                                std::uint64_t thread) {
  Thread& by = threads_[thread];
  const Stream& of = Find(stream);
  OrderClock done = of.clock;
  if (IsLegacy(stream)) JoinBlocking(stream.device, &done);
  JoinThread(by, done);
}

void HappensBefore::AwaitEvent(std::uint64_t event, std::uint64_t thread) {
  const auto found = events_.find(event);
  if (found != events_.end()) JoinThread(threads_[thread], found->second);
}

void HappensBefore::AwaitDevice(std::int32_t device, std::uint64_t thread) {
  Thread& by = threads_[thread];
  JoinThread(by, retired_[device].all);
  for (const auto& [key, stream] : streams_) {
    if (stream.name.device == device) JoinThread(by, stream.clock);
  }
}

void HappensBefore::Release(std::uint64_t tag, std::uint64_t thread) {
  tags_[tag].Join(threads_[thread].clock);
}

void HappensBefore::Acquire(std::uint64_t tag, std::uint64_t thread) {
  const auto found = tags_.find(tag);
  if (found != tags_.end()) JoinThread(threads_[thread], found->second);
}

}  // namespace strata::check
