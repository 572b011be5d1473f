#include "strata/allocation/streams/timeline_table.h"

#include <cstddef>

namespace strata {

TimelineTable::TimelineTable(std::shared_ptr<Platform> platform)
    : platform_(std::move(platform)),
      events_(static_cast<std::size_t>(platform_->device_count())),
      waiting_(events_.size()) {}

TimelineTable::~TimelineTable() = default;

bool TimelineTable::Names(const Stream& stream) const noexcept {
  return stream.uid != 0 && platform_->HasDevice(stream.device);
}

const std::shared_ptr<EventPool>& TimelineTable::EventsOf(Device& device) {
  auto& events = events_[static_cast<std::size_t>(device.ordinal())];
  if (events == nullptr) events = std::make_shared<EventPool>(device);
  return events;
}

std::shared_ptr<StreamTimeline> TimelineTable::ReplaceHandle(
    const Stream& stream) {
  if (reinterpret_cast<std::uintptr_t>(stream.handle) <= kPerThreadHandle) {
    return nullptr;
  }
  std::uint64_t& uid = uids_[{stream.device, stream.handle}];
  // The caller may still use the destroyed stream: uids increase.
  if (uid > stream.uid) return nullptr;
  const auto found = timelines_.find(Key(stream.device, uid));
  uid = stream.uid;
  return found != timelines_.end() ? found->second : nullptr;
}

std::shared_ptr<StreamTimeline> TimelineTable::Of(const Stream& stream) {
  if (!Names(stream)) return nullptr;
  std::shared_ptr<StreamTimeline> timeline;
  std::shared_ptr<StreamTimeline> lost;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    const Key key(stream.device, stream.uid);
    const auto found = timelines_.find(key);
    if (found != timelines_.end()) return found->second;
    Device& device = platform_->device(stream.device);
    timeline = std::make_shared<StreamTimeline>(
        device, stream, EventsOf(device), gate_, lost_, no_waits_);
    const auto added = timelines_.emplace(key, timeline).first;
    try {
      lost = ReplaceHandle(stream);
    } catch (...) {
      timelines_.erase(added);
      throw;
    }
  }
  // Outside the lock: a log sink may allocate.
  if (lost != nullptr) lost->Lose(Status::kInvalidResourceHandle);
  return timeline;
}

void TimelineTable::Lose(const Stream& stream) noexcept {
  const std::shared_ptr<StreamTimeline> timeline = Find(stream);
  if (timeline != nullptr) timeline->Lose(Status::kInvalidResourceHandle);
}

Stream TimelineTable::TakeLost() noexcept {
  // First, so that a stream that is lost meanwhile is found by a later call.
  lost_->set_any(false);
  const std::lock_guard<std::mutex> guard(mutex_);
  for (const auto& [key, timeline] : timelines_) {
    if (!timeline->TakeLost()) continue;
    lost_->set_any(true);  // there may be more
    return timeline->stream();
  }
  return Stream();
}

void TimelineTable::ReturnLost(const Stream& stream) noexcept {
  const std::shared_ptr<StreamTimeline> timeline = Find(stream);
  if (timeline == nullptr) return;
  timeline->ReturnLost();
  lost_->set_any(true);
}

std::shared_ptr<StreamTimeline> TimelineTable::WaitingFor(
    Device& device, const Stream& stream) {
  SideStreams* sides = nullptr;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    auto& waiting = waiting_[static_cast<std::size_t>(device.ordinal())];
    if (waiting == nullptr) waiting = std::make_unique<SideStreams>(device);
    sides = waiting.get();
  }
  return Of(
      sides->Of(SideStreams::With(SideStreams::kNone, stream), gate_.get()));
}

TimelineTable::Moment TimelineTable::MomentOf(const Stream& stream,
                                              Event event) {
  if (!Names(stream) || !event || no_waits_->Has(stream)) return {};
  Device& device = platform_->device(stream.device);
  const CaptureGate::Touch touch(*gate_, device, stream);
  if (!touch) return {};
  const CaptureGate::RelaxedScope relaxed(*gate_, &device);
  if (!relaxed) return {};
  Moment moment;
  moment.timeline = WaitingFor(device, stream);
  if (moment.timeline == nullptr ||
      device.StreamWaitEvent(moment.timeline->stream(), event, 0) !=
          Status::kSuccess) {
    return {};
  }
  moment.tick = moment.timeline->Note();
  return moment;
}

std::shared_ptr<StreamTimeline> TimelineTable::Find(
    const Stream& stream) const noexcept {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = timelines_.find(Key(stream.device, stream.uid));
  return found == timelines_.end() ? nullptr : found->second;
}

bool TimelineTable::WhileThere(const Stream& stream,
                               FunctionRef<void(Device&)> ask) const {
  const std::shared_ptr<StreamTimeline> timeline = Find(stream);
  if (timeline == nullptr) return false;
  const CallGate::Pass use = timeline->Use();
  if (use) ask(timeline->device());
  return static_cast<bool>(use);
}

bool TimelineTable::MayTouch(const Stream& stream) const noexcept {
  bool may_touch = !gate_->any();
  if (may_touch) return true;
  WhileThere(stream, [&](Device& device) {
    may_touch = gate_->MayTouch(device, stream);
  });
  return may_touch;
}

void TimelineTable::ForbidWaits(const Stream& stream) {
  const std::shared_ptr<StreamTimeline> timeline = Of(stream);
  no_waits_->Add(stream);
  timeline->ForbidWaits();
}

void TimelineTable::Settle() {
  std::vector<std::shared_ptr<StreamTimeline>> timelines;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    timelines.reserve(timelines_.size());
    for (const auto& [key, timeline] : timelines_) {
      timelines.push_back(timeline);
    }
  }
  for (const auto& timeline : timelines) {
    static_cast<void>(timeline->Settle());
  }
}

void TimelineTable::StreamDestroyed(const Stream& stream) noexcept {
  no_waits_->Remove(stream);
  std::shared_ptr<StreamTimeline> timeline;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto found = timelines_.find(Key(stream.device, stream.uid));
    if (found == timelines_.end()) return;
    timeline = std::move(found->second);
    timelines_.erase(found);
    const auto uid = uids_.find({stream.device, timeline->stream().handle});
    if (uid != uids_.end() && uid->second == stream.uid) uids_.erase(uid);
  }
  timeline->End();
}

std::size_t TimelineTable::kept_events() const noexcept {
  const std::lock_guard<std::mutex> guard(mutex_);
  std::size_t count = 0;
  for (const auto& events : events_) {
    if (events != nullptr) count += events->kept();
  }
  return count;
}

}  // namespace strata
