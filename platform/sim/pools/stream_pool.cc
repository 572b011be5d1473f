#include "strata/platform/sim/pools/stream_pool.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "strata/base/size.h"

namespace strata::sim {
namespace {

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

}  // namespace

StreamPool::StreamPool(const StreamPoolOptions& options, PoolSpace* space)
    : options_(options), space_(space) {}

std::uint64_t StreamPool::room_bytes() const {
  if (options_.max_bytes == 0) return kNoLimit;
  // No device has more memory than this limit, and rounding it up does not
  // overflow.
  const std::uint64_t most =
      std::min(options_.max_bytes, kMaxDeviceMemoryBytes);
  return AlignUp(most, kFrameBytes) - blocks_.reserved_bytes();
}

ReuseRule StreamPool::Rule(const Stream& stream,
                           const StreamOrder& order) const {
  ReuseRule rule{order, stream};
  rule.follow_dependencies = follow_dependencies_;
  rule.opportunistic = opportunistic_;
  return rule;
}

Status StreamPool::Allocate(std::uint64_t bytes, const Stream& stream,
                            const StreamOrder& order, DevicePtr* ptr) {
  if (bytes > space_->total_bytes()) return Status::kMemoryAllocation;
  const std::uint64_t rounded = AlignUp(bytes, kPoolBlockBytes);
  const ReuseRule rule = Rule(stream, order);
  std::optional<DevicePtr> found = blocks_.Find(rounded, rule);
  if (!found && Grow(rounded)) found = blocks_.Find(rounded, rule);
  if (!found) return Status::kMemoryAllocation;
  blocks_.Take(*found, rounded, nullptr);
  NoteUsed();
  *ptr = *found;
  return Status::kSuccess;
}

Status StreamPool::AllocateWithWaits(std::uint64_t bytes, const Stream& stream,
                                     StreamOrder* order, DevicePtr* ptr) {
  if (!internal_dependencies_ || bytes > space_->total_bytes()) {
    return Status::kMemoryAllocation;
  }
  const std::uint64_t rounded = AlignUp(bytes, kPoolBlockBytes);
  ReuseRule rule = Rule(stream, *order);
  rule.with_waits = true;
  const std::optional<DevicePtr> found = blocks_.Find(rounded, rule);
  if (!found) return Status::kMemoryAllocation;
  std::vector<StreamPoint> points;
  blocks_.Take(*found, rounded, &points);
  for (const StreamPoint& point : points) {
    if (!rule.Allows(point)) order->Wait(stream, point);
  }
  NoteUsed();
  *ptr = *found;
  return Status::kSuccess;
}

bool StreamPool::Grow(std::uint64_t bytes) {
  const std::uint64_t least = AlignUp(bytes, kFrameBytes);
  const std::uint64_t room = room_bytes();
  if (least > room) return false;
  return AddChunk(std::min(std::max(least, kPoolGrowthBytes), room)) ||
         AddChunk(least);
}

bool StreamPool::AddChunk(std::uint64_t bytes) {
  const std::optional<PoolChunk> chunk = space_->Take(bytes);
  if (!chunk) return false;
  blocks_.AddChunk(*chunk);
  reserved_high_ = std::max(reserved_high_, blocks_.reserved_bytes());
  return true;
}

void StreamPool::NoteUsed() {
  used_high_ = std::max(used_high_, blocks_.live_bytes());
}

bool StreamPool::Free(DevicePtr ptr, const std::optional<StreamPoint>& point) {
  return blocks_.Free(ptr, point) != 0;
}

void StreamPool::OnSynchronize(const StreamOrder& order, WaitedFor waited) {
  blocks_.NoteWait(waited);
  TrimTo(release_threshold_, opportunistic_ ? &order : nullptr);
}

void StreamPool::TrimTo(std::uint64_t keep_bytes, const StreamOrder* order) {
  while (blocks_.reserved_bytes() > keep_bytes) {
    const std::optional<PoolChunk> chunk =
        blocks_.TakeIdleChunk(order, blocks_.reserved_bytes() - keep_bytes);
    if (!chunk) return;
    space_->Give(*chunk);
  }
}

bool StreamPool::ReleaseChunk(const StreamOrder& order) {
  const std::optional<PoolChunk> chunk =
      blocks_.TakeIdleChunk(&order, kNoLimit);
  if (chunk) space_->Give(*chunk);
  return chunk.has_value();
}

Status StreamPool::SetAttribute(PoolAttribute attribute, std::uint64_t value) {
  switch (attribute) {
    case PoolAttribute::kReuseFollowEventDependencies:
      follow_dependencies_ = value != 0;
      return Status::kSuccess;
    case PoolAttribute::kReuseAllowOpportunistic:
      opportunistic_ = value != 0;
      return Status::kSuccess;
    case PoolAttribute::kReuseAllowInternalDependencies:
      internal_dependencies_ = value != 0;
      return Status::kSuccess;
    case PoolAttribute::kReleaseThreshold:
      release_threshold_ = value;
      return Status::kSuccess;
    case PoolAttribute::kReservedHigh:
      if (value != 0) return Status::kInvalidValue;
      reserved_high_ = blocks_.reserved_bytes();
      return Status::kSuccess;
    case PoolAttribute::kUsedHigh:
      if (value != 0) return Status::kInvalidValue;
      used_high_ = blocks_.live_bytes();
      return Status::kSuccess;
    case PoolAttribute::kReservedCurrent:
    case PoolAttribute::kUsedCurrent:
      break;
  }
  return Status::kInvalidValue;
}

Status StreamPool::GetAttribute(PoolAttribute attribute,
                                std::uint64_t* value) const {
  switch (attribute) {
    case PoolAttribute::kReuseFollowEventDependencies:
      *value = follow_dependencies_ ? 1 : 0;
      return Status::kSuccess;
    case PoolAttribute::kReuseAllowOpportunistic:
      *value = opportunistic_ ? 1 : 0;
      return Status::kSuccess;
    case PoolAttribute::kReuseAllowInternalDependencies:
      *value = internal_dependencies_ ? 1 : 0;
      return Status::kSuccess;
    case PoolAttribute::kReleaseThreshold:
      *value = release_threshold_;
      return Status::kSuccess;
    case PoolAttribute::kReservedCurrent:
      *value = blocks_.reserved_bytes();
      return Status::kSuccess;
    case PoolAttribute::kReservedHigh:
      *value = reserved_high_;
      return Status::kSuccess;
    case PoolAttribute::kUsedCurrent:
      *value = blocks_.live_bytes();
      return Status::kSuccess;
    case PoolAttribute::kUsedHigh:
      *value = used_high_;
      return Status::kSuccess;
  }
  return Status::kInvalidValue;
}

Access StreamPool::AccessOf(int device) const {
  if (device == options_.device) return Access::kReadWrite;
  const auto found = access_.find(device);
  return found == access_.end() ? Access::kNone : found->second;
}

}  // namespace strata::sim
