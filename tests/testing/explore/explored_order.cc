#include "strata/tests/testing/explore/explored_order.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "strata/platform/sim/device/sim_device.h"

namespace strata {

ExploredOrder::ExploredOrder(SimPlatform* platform, std::vector<Stream> streams)
    : platform_(platform),
      streams_(std::move(streams)),
      capturing_(streams_.size()),
      clocks_(streams_.size()),
      waits_(streams_.size()),
      completed_(streams_.size()) {
  platform_->sim_device(0).SetCallObserver(
      [this](const CallRecord& call) { Observe(call); });
}

ExploredOrder::~ExploredOrder() {
  platform_->sim_device(0).SetCallObserver(nullptr);
}

void ExploredOrder::SetCapturing(std::size_t stream, bool capturing) {
  capturing_[stream] = capturing;
}

ExploredOrder::Position ExploredOrder::Submitted(std::size_t stream) const {
  const std::lock_guard<std::mutex> guard(platform_->mutex());
  return platform_->scheduler().Last(streams_[stream]).count;
}

ExploredOrder::Position ExploredOrder::Completed(std::size_t stream) const {
  const std::lock_guard<std::mutex> guard(platform_->mutex());
  sim::StreamPoint point = platform_->scheduler().Last(streams_[stream]);
  const Position submitted = point.count;
  Position& completed = completed_[stream];
  for (point.count = completed + 1;
       point.count <= submitted && platform_->scheduler().IsDone(point);
       ++point.count) {
    completed = point.count;
  }
  return completed;
}

ExploredOrder::Position ExploredOrder::Before(std::size_t stream,
                                              std::size_t of) const {
  return std::max(At(clocks_[stream], of), At(host_, of));
}

std::size_t ExploredOrder::IndexOf(std::uint64_t uid) const {
  std::size_t index = 0;
  while (index < streams_.size() && streams_[index].uid != uid) ++index;
  return index;
}

void ExploredOrder::Raise(Clock& clock, std::size_t stream, Position position) {
  if (clock.size() <= stream) clock.resize(stream + 1);
  clock[stream] = std::max(clock[stream], position);
}

void ExploredOrder::Join(Clock& clock, const Clock& other) {
  for (std::size_t i = 0; i < other.size(); ++i) Raise(clock, i, other[i]);
}

void ExploredOrder::Observe(const CallRecord& call) {
  if (call.status != Status::kSuccess) return;
  if (call.call == DeviceCall::kStreamCreate) {
    streams_.push_back(
        Stream{reinterpret_cast<void*>(call.ptr), 0, call.stream_uid});
    capturing_.push_back(false);
    clocks_.emplace_back();
    waits_.emplace_back();
    completed_.push_back(0);
    return;
  }
  const std::size_t stream = IndexOf(call.stream_uid);
  const bool is_work = stream < streams_.size() && !capturing_[stream];
  switch (call.call) {
    case DeviceCall::kEventRecord:
      if (is_work) Record(call.ptr, stream);
      break;
    case DeviceCall::kStreamWaitEvent:
      if (is_work) WaitFor(call.ptr, stream);
      break;
    case DeviceCall::kEventDestroy:
      events_.erase(call.ptr);
      break;
    default:
      ObserveDone(call);
  }
}

void ExploredOrder::ObserveDone(const CallRecord& call) {
  switch (call.call) {
    case DeviceCall::kEventQuery:
    case DeviceCall::kEventSynchronize:
      SeeEvent(call.ptr);
      break;
    case DeviceCall::kStreamQuery:
    case DeviceCall::kStreamSynchronize:
      if (const std::size_t stream = IndexOf(call.stream_uid);
          stream < streams_.size()) {
        SeeStream(stream);
      }
      break;
    case DeviceCall::kSynchronize:
      for (std::size_t i = 0; i < streams_.size(); ++i) SeeStream(i);
      break;
    default:
      break;
  }
}

void ExploredOrder::Record(std::uint64_t event, std::size_t stream) {
  Recorded recorded;
  recorded.at = Point{stream, Submitted(stream)};
  recorded.before = clocks_[stream];
  Join(recorded.before, host_);
  Raise(recorded.before, stream, recorded.at.position);
  events_[event] = std::move(recorded);
}

void ExploredOrder::WaitFor(std::uint64_t event, std::size_t stream) {
  const auto found = events_.find(event);
  if (found == events_.end()) return;
  waits_[stream].push_back(Wait{Submitted(stream), found->second.at});
  Join(clocks_[stream], found->second.before);
}

void ExploredOrder::SeeEvent(std::uint64_t event) {
  const auto found = events_.find(event);
  if (found == events_.end()) return;
  found->second.seen = true;
  Join(host_, found->second.before);
}

void ExploredOrder::SeeStream(std::size_t stream) {
  Join(host_, clocks_[stream]);
  Raise(host_, stream, Submitted(stream));
}

}  // namespace strata
