#include "strata/platform/sim/memory/device_memory.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace strata::sim {
namespace {

constexpr std::uint64_t kTebibyte = std::uint64_t{1} << 40;
constexpr std::uint64_t kSliceLaneBytes = 2 * kTebibyte;
constexpr std::uint64_t kFrameLaneBytes = 10 * kTebibyte;
constexpr std::uint64_t kSpareLaneBytes =
    kDeviceWindowBytes - kSliceLaneBytes - kFrameLaneBytes;

std::uint64_t AddressBytes(const FrameShare& share) {
  if (share.frames > 0) return share.frames * kFrameBytes;
  return share.slices * kSliceBytes;
}

std::unique_ptr<FrameStore> MakeStore(SimData data, std::uint64_t frames) {
  if (data == SimData::kPhantom || data == SimData::kSmall) return nullptr;
  return std::make_unique<FrameStore>(data, frames * kFrameBytes);
}

std::unique_ptr<KeptBytes> MakeKept(SimData data) {
  return data == SimData::kSmall ? std::make_unique<KeptBytes>() : nullptr;
}

// Calls `visit` for every run of the share's memory.
template <class Visit>
void VisitRuns(const FrameTable& frames, const FrameShare& share, Visit visit) {
  const std::uint64_t bytes = AddressBytes(share);
  for (std::uint64_t offset = 0; offset < bytes;) {
    const PhysicalRun run = frames.Locate(share, offset);
    visit(run);
    offset += run.bytes;
  }
}

}  // namespace

DeviceMemory::DeviceMemory(int device, std::uint64_t bytes, SimData data,
                           HostViews* views)
    : frames_(bytes / kFrameBytes),
      store_(MakeStore(data, frames_.frames())),
      kept_(MakeKept(data)),
      views_(views),
      slices_(kDeviceWindows.BeginOf(device), kSliceLaneBytes),
      frame_lane_(kDeviceWindows.BeginOf(device) + kSliceLaneBytes,
                  kFrameLaneBytes),
      spare_lane_(
          kDeviceWindows.BeginOf(device) + kSliceLaneBytes + kFrameLaneBytes,
          kSpareLaneBytes) {}

Status DeviceMemory::Allocate(std::uint64_t bytes, DevicePtr* ptr) {
  std::optional<FrameShare> share = Take(bytes);
  if (!share) return Status::kMemoryAllocation;
  LiveAllocation live{bytes, std::move(*share)};
  std::optional<DevicePtr> found =
      live.share.frames > 0 ? AddLarge(live) : slices_.Add(live);
  if (!found) found = AddSpare(live);
  if (!found) {
    GiveFrames(live.share);
    return Status::kMemoryAllocation;
  }
  ++live_count_;
  live_bytes_ += bytes;
  NotePeak();
  *ptr = *found;
  return Status::kSuccess;
}

Status DeviceMemory::Free(DevicePtr ptr) {
  const std::optional<LiveAllocation> live = Remove(ptr);
  if (!live) return Status::kInvalidValue;
  DropViews(ptr, live->bytes);
  GiveFrames(live->share);
  --live_count_;
  live_bytes_ -= live->bytes;
  return Status::kSuccess;
}

Status DeviceMemory::TakeFrames(std::uint64_t bytes, FrameShare* share) {
  std::optional<FrameShare> taken = Take(bytes);
  if (!taken) return Status::kMemoryAllocation;
  NotePeak();
  *share = std::move(*taken);
  return Status::kSuccess;
}

void DeviceMemory::DropViews(DevicePtr ptr, std::uint64_t bytes) {
  if (views_ != nullptr) views_->Drop(ptr, bytes);
}

std::uint64_t DeviceMemory::TakeExternal(std::uint64_t bytes) {
  const std::uint64_t frames =
      std::min(frames_.free_frames(), FramesFor(bytes));
  if (frames == 0) return 0;
  const FrameShare taken = frames_.Take(frames * kFrameBytes).value();
  external_.insert(external_.end(), taken.extents.begin(), taken.extents.end());
  external_bytes_ += frames * kFrameBytes;
  return frames * kFrameBytes;
}

void DeviceMemory::GiveExternal(std::uint64_t bytes) {
  std::uint64_t frames = FramesFor(bytes);
  while (frames > 0 && !external_.empty()) {
    FrameExtent& last = external_.back();
    FrameShare given;
    given.frames = std::min(frames, last.count);
    last.count -= given.frames;
    given.extents = {{last.first + last.count, given.frames, 0}};
    frames_.Give(given);
    external_bytes_ -= given.frames * kFrameBytes;
    frames -= given.frames;
    if (last.count == 0) external_.pop_back();
  }
}

std::optional<FrameShare> DeviceMemory::Take(std::uint64_t bytes) {
  std::optional<FrameShare> share = frames_.Take(bytes);
  if (share && store_ != nullptr) {
    VisitRuns(frames_, *share,
              [this](const PhysicalRun& run) { store_->Fresh(run); });
  }
  return share;
}

void DeviceMemory::GiveFrames(const FrameShare& share) {
  const std::uint64_t free_before = frames_.free_frames();
  frames_.Give(share);
  // The frames are still valid for Locate: nothing was allocated since.
  if (kept_ != nullptr && !kept_->empty()) {
    VisitRuns(frames_, share,
              [this](const PhysicalRun& run) { kept_->Drop(run); });
  }
  if (store_ == nullptr) return;
  VisitRuns(frames_, share, [&](PhysicalRun run) {
    store_->Freed(run);
    if (frames_.free_frames() == free_before) return;
    if (share.frames == 0) {
      run = {run.offset / kFrameBytes * kFrameBytes, kFrameBytes};
    }
    store_->FreeFrames(run);
  });
}

void DeviceMemory::NoteFresh(const PhysicalRun& run) {
  if (store_ != nullptr) store_->Fresh(run);
  if (kept_ != nullptr) kept_->Drop(run);
}

void DeviceMemory::NoteFreed(const PhysicalRun& run) {
  if (store_ != nullptr) store_->Freed(run);
  if (kept_ != nullptr) kept_->Drop(run);
}

void DeviceMemory::ResetPeakUsedBytes() {
  peak_used_bytes_ = 0;
  NotePeak();
}

void DeviceMemory::NotePeak() {
  peak_used_bytes_ = std::max(peak_used_bytes_,
                              total_bytes() - free_bytes() - external_bytes_);
}

bool DeviceMemory::Covers(DevicePtr ptr, std::uint64_t bytes) const {
  if (slices_.Contains(ptr)) return slices_.Covers(ptr, bytes);
  return FindCovering(live_, ptr, bytes) != live_.end();
}

std::optional<PhysicalRun> DeviceMemory::Locate(DevicePtr ptr) const {
  std::optional<LiveAllocation> slices;
  const LiveAllocation* found = nullptr;
  std::uint64_t offset = 0;
  if (slices_.Contains(ptr)) {
    slices = slices_.Find(ptr, &offset);
    if (slices) found = &*slices;
  } else if (const auto live = FindCovering(live_, ptr, 1);
             live != live_.end()) {
    offset = ptr - live->first;
    found = &live->second;
  }
  if (found == nullptr) return std::nullopt;
  PhysicalRun run = frames_.Locate(found->share, offset);
  run.bytes = std::min(run.bytes, found->bytes - offset);
  return run;
}

std::optional<DevicePtr> DeviceMemory::AddLarge(LiveAllocation& live) {
  const auto ptr = frame_lane_.Take(AddressBytes(live.share), kFrameBytes);
  // Addresses mostly rise, so the end of the map is mostly the right hint.
  if (ptr) live_.Add(live_.end(), *ptr, std::move(live));
  return ptr;
}

std::optional<DevicePtr> DeviceMemory::AddSpare(LiveAllocation& live) {
  const std::uint64_t alignment =
      live.share.frames > 0 ? kFrameBytes : kSliceBytes;
  const auto ptr = spare_lane_.TakeLowest(AddressBytes(live.share), alignment);
  if (ptr) live_.Add(live_.upper_bound(*ptr), *ptr, std::move(live));
  return ptr;
}

std::optional<LiveAllocation> DeviceMemory::Remove(DevicePtr ptr) {
  if (slices_.Contains(ptr)) return slices_.Remove(ptr);
  const auto found = live_.find(ptr);
  if (found == live_.end()) return std::nullopt;
  LiveAllocation live = std::move(found->second);
  AddressLane& lane = frame_lane_.Contains(ptr) ? frame_lane_ : spare_lane_;
  lane.Give(ptr, AddressBytes(live.share));
  live_.Erase(found);
  return live;
}

}  // namespace strata::sim
