#include "strata/platform/sim/device_memory.h"

#include <algorithm>
#include <optional>

namespace strata {
namespace {

constexpr std::uint64_t kTebibyte = std::uint64_t{1} << 40;
constexpr std::uint64_t kSliceLaneBytes = 2 * kTebibyte;
constexpr std::uint64_t kFrameLaneBytes = 10 * kTebibyte;
constexpr std::uint64_t kSpareLaneBytes =
    kDeviceWindowBytes - kSliceLaneBytes - kFrameLaneBytes;

DevicePtr WindowBegin(int device) {
  return kDeviceWindowBegin +
         static_cast<std::uint64_t>(device) * kDeviceWindowBytes;
}

std::uint64_t AddressBytes(const FrameShare& share) {
  if (share.frames > 0) return share.frames * kFrameBytes;
  return share.slices * kSliceBytes;
}

}  // namespace

int DeviceOfAddress(DevicePtr ptr) {
  if (ptr < kDeviceWindowBegin) return -1;
  const std::uint64_t index = (ptr - kDeviceWindowBegin) / kDeviceWindowBytes;
  return index < kMaxSimDevices ? static_cast<int>(index) : -1;
}

DeviceMemory::DeviceMemory(int device, std::uint64_t bytes)
    : frames_(bytes / kFrameBytes),
      slices_(WindowBegin(device), kSliceLaneBytes),
      frame_lane_(WindowBegin(device) + kSliceLaneBytes, kFrameLaneBytes),
      spare_lane_(WindowBegin(device) + kSliceLaneBytes + kFrameLaneBytes,
                  kSpareLaneBytes) {}

Status DeviceMemory::Allocate(std::uint64_t bytes, DevicePtr* ptr) {
  const std::optional<FrameShare> share = frames_.Take(bytes);
  if (!share) return Status::kMemoryAllocation;
  const LiveAllocation live{bytes, *share};
  std::optional<DevicePtr> found =
      share->frames > 0 ? AddLarge(live) : slices_.Add(live);
  if (!found) found = AddSpare(live);
  if (!found) {
    frames_.Give(*share);
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
  frames_.Give(live->share);
  --live_count_;
  live_bytes_ -= live->bytes;
  return Status::kSuccess;
}

Status DeviceMemory::TakeFrames(std::uint64_t bytes, FrameShare* share) {
  const std::optional<FrameShare> taken = frames_.Take(bytes);
  if (!taken) return Status::kMemoryAllocation;
  NotePeak();
  *share = *taken;
  return Status::kSuccess;
}

void DeviceMemory::GiveFrames(const FrameShare& share) { frames_.Give(share); }

void DeviceMemory::NotePeak() {
  peak_used_bytes_ = std::max(peak_used_bytes_, total_bytes() - free_bytes());
}

bool DeviceMemory::Covers(DevicePtr ptr, std::uint64_t bytes) const {
  if (slices_.Contains(ptr)) return slices_.Covers(ptr, bytes);
  auto live = live_.upper_bound(ptr);
  if (live == live_.begin()) return false;
  --live;
  const std::uint64_t offset = ptr - live->first;
  const std::uint64_t size = live->second.bytes;
  return offset < size && bytes <= size - offset;
}

std::optional<DevicePtr> DeviceMemory::AddLarge(const LiveAllocation& live) {
  const auto ptr = frame_lane_.Take(AddressBytes(live.share), kFrameBytes);
  // Addresses mostly rise, so the end of the map is mostly the right place.
  if (ptr) live_.emplace_hint(live_.end(), *ptr, live);
  return ptr;
}

std::optional<DevicePtr> DeviceMemory::AddSpare(const LiveAllocation& live) {
  const std::uint64_t alignment =
      live.share.frames > 0 ? kFrameBytes : kSliceBytes;
  const auto ptr = spare_lane_.TakeLowest(AddressBytes(live.share), alignment);
  if (ptr) live_.emplace(*ptr, live);
  return ptr;
}

std::optional<LiveAllocation> DeviceMemory::Remove(DevicePtr ptr) {
  if (slices_.Contains(ptr)) return slices_.Remove(ptr);
  const auto found = live_.find(ptr);
  if (found == live_.end()) return std::nullopt;
  const LiveAllocation live = found->second;
  AddressLane& lane = frame_lane_.Contains(ptr) ? frame_lane_ : spare_lane_;
  lane.Give(ptr, AddressBytes(live.share));
  live_.erase(found);
  return live;
}

}  // namespace strata
