#include "strata/platform/sim/memory/frame_table.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace strata::sim {
namespace {

std::uint16_t SlicesFor(std::uint64_t bytes) {
  return static_cast<std::uint16_t>((bytes + kSliceBytes - 1) / kSliceBytes);
}

}  // namespace

SharedFrame::SharedFrame() : free_{SliceRun{0, kSlices}} {}

std::uint16_t SharedFrame::Take(std::uint16_t count) {
  const auto run =
      std::find_if(free_.begin(), free_.end(),
                   [count](const SliceRun& r) { return r.count >= count; });
  const std::uint16_t begin = run->begin;
  const bool was_longest = run->count == longest_;
  run->begin = static_cast<std::uint16_t>(run->begin + count);
  run->count = static_cast<std::uint16_t>(run->count - count);
  if (run->count == 0) free_.erase(run);
  if (was_longest) {
    longest_ = 0;
    for (const SliceRun& r : free_) longest_ = std::max(longest_, r.count);
  }
  return begin;
}

void SharedFrame::Give(std::uint16_t begin, std::uint16_t count) {
  auto next = std::lower_bound(
      free_.begin(), free_.end(), begin,
      [](const SliceRun& r, std::uint16_t b) { return r.begin < b; });
  SliceRun run{begin, count};
  if (next != free_.end() && begin + count == next->begin) {
    run.count = static_cast<std::uint16_t>(run.count + next->count);
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    SliceRun& previous = *std::prev(next);
    if (previous.begin + previous.count == begin) {
      previous.count = static_cast<std::uint16_t>(previous.count + run.count);
      longest_ = std::max(longest_, previous.count);
      return;
    }
  }
  free_.insert(next, run);
  longest_ = std::max(longest_, run.count);
}

FrameTable::FrameTable(std::uint64_t frames)
    : frames_(frames), free_frames_(frames), tree_(2, 0) {
  if (frames > 0) free_.Add(free_.end(), frames, 0);
}

std::optional<FrameShare> FrameTable::Take(std::uint64_t bytes) {
  FrameShare share;
  if (bytes >= kOwnFramesBytes) {
    share.frames = FramesFor(bytes);
    if (share.frames > free_frames_) return std::nullopt;
    share.extents = TakeFrames(share.frames);
    return share;
  }
  share.slices = SlicesFor(bytes);
  std::optional<std::uint32_t> index = LowestWith(share.slices);
  if (!index) index = NewSharedFrame();
  if (!index) return std::nullopt;
  share.shared_frame = *index;
  share.first_slice = shared_[*index].Take(share.slices);
  SetLongest(*index, shared_[*index].longest());
  return share;
}

void FrameTable::Give(const FrameShare& share) {
  if (share.frames > 0) {
    for (const FrameExtent& extent : share.extents) {
      GiveFrames(extent.first, extent.count);
    }
    return;
  }
  SharedFrame& frame = shared_[share.shared_frame];
  frame.Give(share.first_slice, share.slices);
  if (frame.longest() < SharedFrame::kSlices) {
    SetLongest(share.shared_frame, frame.longest());
    return;
  }
  unused_.insert(share.shared_frame);
  SetLongest(share.shared_frame, 0);
  GiveFrames(shared_numbers_[share.shared_frame], 1);
}

PhysicalRun FrameTable::Locate(const FrameShare& share,
                               std::uint64_t offset) const {
  if (share.frames == 0) {
    const std::uint64_t begin =
        shared_numbers_[share.shared_frame] * kFrameBytes +
        share.first_slice * kSliceBytes;
    return {begin + offset, share.slices * kSliceBytes - offset};
  }
  const std::uint64_t frame = offset / kFrameBytes;
  const auto extent = std::prev(std::upper_bound(
      share.extents.begin(), share.extents.end(), frame,
      [](std::uint64_t f, const FrameExtent& e) { return f < e.before; }));
  const std::uint64_t inside = offset - extent->before * kFrameBytes;
  return {extent->first * kFrameBytes + inside,
          extent->count * kFrameBytes - inside};
}

// `count` is at most free_frames_.
std::vector<FrameExtent> FrameTable::TakeFrames(std::uint64_t count) {
  std::vector<FrameExtent> extents;
  std::uint64_t taken = 0;
  while (taken < count) {
    const auto lowest = free_.begin();
    const std::uint64_t first = lowest->second;
    const std::uint64_t part = std::min(count - taken, lowest->first - first);
    extents.push_back({first, part, taken});
    taken += part;
    lowest->second += part;
    if (lowest->second == lowest->first) free_.Erase(lowest);
  }
  free_frames_ -= count;
  return extents;
}

void FrameTable::GiveFrames(std::uint64_t first, std::uint64_t count) {
  free_frames_ += count;
  AddRange(first, first + count, &free_);
}

std::optional<std::uint32_t> FrameTable::LowestWith(
    std::uint16_t slices) const {
  if (tree_[1] < slices) return std::nullopt;
  std::uint32_t node = 1;
  while (node < leaves_) {
    node *= 2;
    if (tree_[node] < slices) ++node;
  }
  return node - leaves_;
}

std::optional<std::uint32_t> FrameTable::NewSharedFrame() {
  if (free_frames_ == 0) return std::nullopt;
  std::uint32_t index;
  if (unused_.empty()) {
    index = static_cast<std::uint32_t>(shared_.size());
    shared_.emplace_back();
    shared_numbers_.push_back(0);
    if (shared_.size() > leaves_) Grow();
  } else {
    index = *unused_.begin();
    unused_.erase(unused_.begin());
  }
  shared_numbers_[index] = TakeFrames(1).front().first;
  return index;
}

void FrameTable::SetLongest(std::uint32_t index, std::uint16_t longest) {
  std::uint32_t node = leaves_ + index;
  tree_[node] = longest;
  for (node /= 2; node >= 1; node /= 2) {
    const std::uint16_t best = std::max(tree_[2 * node], tree_[2 * node + 1]);
    if (tree_[node] == best) return;
    tree_[node] = best;
  }
}

void FrameTable::Grow() {
  const std::uint32_t old_leaves = leaves_;
  const std::vector<std::uint16_t> old_tree = std::move(tree_);
  leaves_ *= 2;
  tree_.assign(std::size_t{2} * leaves_, 0);
  std::copy(old_tree.begin() + old_leaves, old_tree.end(),
            tree_.begin() + leaves_);
  for (std::uint32_t node = leaves_ - 1; node >= 1; --node) {
    tree_[node] = std::max(tree_[2 * node], tree_[2 * node + 1]);
  }
}

}  // namespace strata::sim
