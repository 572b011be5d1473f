#include "strata/allocation/streams/timeline_table.h"

#include <cstddef>

namespace strata {

TimelineTable::TimelineTable(std::shared_ptr<Platform> platform)
    : platform_(std::move(platform)),
      events_(static_cast<std::size_t>(platform_->device_count())) {}

std::shared_ptr<StreamTimeline> TimelineTable::Of(const Stream& stream) {
  if (stream.uid == 0 || stream.device < 0 ||
      stream.device >= platform_->device_count()) {
    return nullptr;
  }
  const std::lock_guard<std::mutex> guard(mutex_);
  std::shared_ptr<StreamTimeline>& timeline =
      timelines_[Key(stream.device, stream.uid)];
  if (timeline == nullptr) {
    Device& device = platform_->device(stream.device);
    auto& events = events_[static_cast<std::size_t>(stream.device)];
    if (events == nullptr) events = std::make_shared<EventPool>(device);
    timeline = std::make_shared<StreamTimeline>(device, stream, events, gate_);
  }
  return timeline;
}

std::shared_ptr<StreamTimeline> TimelineTable::Find(
    const Stream& stream) const noexcept {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = timelines_.find(Key(stream.device, stream.uid));
  return found == timelines_.end() ? nullptr : found->second;
}

void TimelineTable::StreamDestroyed(const Stream& stream) noexcept {
  std::shared_ptr<StreamTimeline> timeline;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto found = timelines_.find(Key(stream.device, stream.uid));
    if (found == timelines_.end()) return;
    timeline = std::move(found->second);
    timelines_.erase(found);
  }
  timeline->End();
}

}  // namespace strata
