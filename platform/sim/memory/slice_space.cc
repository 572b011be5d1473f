#include "strata/platform/sim/memory/slice_space.h"

#include <algorithm>

namespace strata::sim {

SliceSpace::SliceSpace(DevicePtr begin, std::uint64_t bytes)
    : begin_(begin), pages_in_all_(bytes / kFrameBytes) {}

std::optional<DevicePtr> SliceSpace::Add(const LiveAllocation& live) {
  const FrameShare& share = live.share;
  if (next_slice_ + share.slices > SharedFrame::kSlices && !MoveToFreePage()) {
    return std::nullopt;
  }
  Page& page = pages_[current_];
  page.slices.push_back(Slice{
      static_cast<std::uint16_t>(next_slice_), share.slices, share.first_slice,
      true, share.shared_frame, static_cast<std::uint32_t>(live.bytes)});
  ++page.live;
  ++page.held;
  const DevicePtr ptr =
      begin_ + current_ * kFrameBytes + next_slice_ * kSliceBytes;
  next_slice_ += share.slices;
  return ptr;
}

std::optional<LiveAllocation> SliceSpace::Remove(DevicePtr ptr) {
  const Slice* found = SliceAt(ptr);
  const PageIndex index = PageOf(ptr);
  if (found == nullptr) return std::nullopt;
  Page& page = pages_.find(index)->second;
  if (begin_ + index * kFrameBytes + found->offset * kSliceBytes != ptr) {
    return std::nullopt;
  }
  const LiveAllocation live = AllocationOf(*found);
  page.slices[static_cast<std::size_t>(found - page.slices.data())].live =
      false;
  --page.live;
  DropDead(&page);
  quarantine_.push_back(index);
  if (quarantine_.size() > kQuarantinedFrees) {
    LetGo(quarantine_.front());
    quarantine_.pop_front();
  }
  return live;
}

bool SliceSpace::Covers(DevicePtr ptr, std::uint64_t bytes) const {
  std::uint64_t offset = 0;
  const std::optional<LiveAllocation> found = Find(ptr, &offset);
  return found && bytes <= found->bytes - offset;
}

std::optional<LiveAllocation> SliceSpace::Find(DevicePtr ptr,
                                               std::uint64_t* offset) const {
  const Slice* found = SliceAt(ptr);
  if (found == nullptr) return std::nullopt;
  *offset = (ptr - begin_) % kFrameBytes - found->offset * kSliceBytes;
  if (*offset >= found->bytes) return std::nullopt;
  return AllocationOf(*found);
}

LiveAllocation SliceSpace::AllocationOf(const Slice& slice) {
  LiveAllocation live;
  live.bytes = slice.bytes;
  live.share.shared_frame = slice.shared_frame;
  live.share.first_slice = slice.first_slice;
  live.share.slices = slice.slices;
  return live;
}

bool SliceSpace::MoveToFreePage() {
  const auto tries = std::min<std::uint64_t>(kMaxPagesTried, pages_in_all_);
  for (std::uint64_t i = 0; i < tries; ++i) {
    current_ = (current_ + 1) % pages_in_all_;
    if (pages_.count(current_) != 0) continue;
    next_slice_ = 0;
    return true;
  }
  // The page at the cursor is not free: it accepts no new slice.
  next_slice_ = SharedFrame::kSlices;
  return false;
}

// The live slice at or before `ptr` in its page.
const SliceSpace::Slice* SliceSpace::SliceAt(DevicePtr ptr) const {
  const auto found = pages_.find(PageOf(ptr));
  if (found == pages_.end()) return nullptr;
  const std::vector<Slice>& slices = found->second.slices;
  const std::uint64_t offset = (ptr - begin_) % kFrameBytes / kSliceBytes;
  auto slice = std::upper_bound(
      slices.begin(), slices.end(), offset,
      [](std::uint64_t o, const Slice& s) { return o < s.offset; });
  if (slice == slices.begin()) return nullptr;
  --slice;
  return slice->live ? &*slice : nullptr;
}

// Only when half of the slices are dead, so that each is moved a constant
// number of times.
void SliceSpace::DropDead(Page* page) {
  std::vector<Slice>& slices = page->slices;
  if (slices.size() < 2 * std::size_t{page->live} + 8) return;
  slices.erase(std::remove_if(slices.begin(), slices.end(),
                              [](const Slice& s) { return !s.live; }),
               slices.end());
  slices.shrink_to_fit();
}

void SliceSpace::LetGo(PageIndex index) {
  const auto page = pages_.find(index);
  if (--page->second.held == 0) pages_.erase(page);
}

}  // namespace strata::sim
