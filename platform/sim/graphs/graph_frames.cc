#include "strata/platform/sim/graphs/graph_frames.h"

#include <algorithm>

#include "strata/platform/sim/memory/frame_table.h"

namespace strata::sim {

std::optional<std::vector<FrameNumber>> GraphFrames::Take(std::uint64_t count) {
  std::vector<FrameNumber> numbers;
  if (count == 0) return numbers;
  FrameShare share;
  if (memory_->TakeFrames(count * kFrameBytes, &share) != Status::kSuccess) {
    return std::nullopt;
  }
  for (const FrameExtent& extent : share.extents) {
    for (std::uint64_t i = 0; i < extent.count; ++i) {
      numbers.push_back(extent.first + i);
      frames_.try_emplace(extent.first + i);
    }
  }
  return numbers;
}

void GraphFrames::Give(FrameNumber frame) {
  frames_.erase(frame);
  FrameShare share;
  share.frames = 1;
  share.extents = {{frame, 1, 0}};
  memory_->GiveFrames(share);
}

std::vector<FrameNumber> GraphFrames::All() const {
  std::vector<FrameNumber> numbers;
  numbers.reserve(frames_.size());
  for (const auto& [number, frame] : frames_) numbers.push_back(number);
  return numbers;
}

bool GraphFrames::IsUsable(FrameNumber frame, DevicePtr chunk,
                           const Stream& stream,
                           const StreamOrder& order) const {
  const Frame& found = frames_.at(frame);
  if (found.pinned_by != 0 && found.pinned_by != chunk) return false;
  return std::all_of(found.uses.begin(), found.uses.end(), [&](const Use& use) {
    return use.chunk == chunk || order.IsDone(use.point) ||
           order.IsBefore(use.point, stream);
  });
}

bool GraphFrames::IsIdle(FrameNumber frame, const StreamOrder& order) const {
  const Frame& found = frames_.at(frame);
  return found.pinned_by == 0 &&
         std::all_of(found.uses.begin(), found.uses.end(),
                     [&](const Use& use) { return order.IsDone(use.point); });
}

}  // namespace strata::sim
