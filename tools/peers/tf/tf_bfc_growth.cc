// The growth of TfBfcPeer when no chunk fits: new regions, chunks joined in
// spite of their stamps, and idle regions replaced by others.

#include <algorithm>

#include "strata/base/size.h"
#include "strata/tools/peers/tf/tf_bfc_peer.h"

namespace strata::peers {
namespace {

constexpr std::size_t kUnitBytes = 256;
// In single precision, which determines the following sizes (R18).
constexpr float kBackpedal = 0.9F;

}  // namespace

// R16 to R21.
bool TfBfcPeer::Extend(std::size_t rounded) {
  const std::size_t held = stats_.reserved_bytes;
  const std::size_t available =
      (limit_bytes_ - std::min(limit_bytes_, held)) & ~(kUnitBytes - 1);
  if (rounded > available) return false;
  bool was_raised = false;
  while (rounded > hint_bytes_) {
    hint_bytes_ *= 2;
    was_raised = true;
  }
  const TfBfcRegions::Region region =
      TakeFromDevice(std::min(hint_bytes_, available), rounded);
  if (region.bytes == 0) return false;
  if (!was_raised) hint_bytes_ *= 2;
  stats_.AddReserved(region.bytes);
  regions_.Add(region.begin, region.bytes);
  const Handle handle = NewChunk();
  chunks_[handle].address = region.begin;
  chunks_[handle].bytes = region.bytes;
  regions_.SetHandle(region.begin, handle);
  InsertIntoBin(handle);
  return true;
}

TfBfcRegions::Region TfBfcPeer::TakeFromDevice(std::size_t bytes,
                                               std::size_t least) {
  while (true) {
    DevicePtr address = 0;
    if (FoundMemory(device_.MemAlloc(&address, bytes), DeviceCall::kMemAlloc)) {
      return {address, bytes};
    }
    const auto less = AlignUp(
        static_cast<std::size_t>(static_cast<float>(bytes) * kBackpedal),
        kUnitBytes);
    // Rounding up would leave small sizes unchanged.
    bytes = less < bytes ? less : bytes - kUnitBytes;
    if (bytes < least) return {};
  }
}

// R32, R33.
bool TfBfcPeer::FreeIdleRegions(std::size_t rounded) {
  if (!options_.garbage_collection) return false;
  std::vector<TfBfcRegions::Region> idle;
  std::size_t idle_bytes = 0;
  for (const TfBfcRegions::Region& region : regions_.List()) {
    if (!IsIdle(region)) continue;
    idle.push_back(region);
    idle_bytes += region.bytes;
  }
  if (idle_bytes == 0 ||
      rounded > limit_bytes_ - stats_.reserved_bytes + idle_bytes) {
    return false;
  }
  for (const TfBfcRegions::Region& region : idle) FreeRegion(region);
  return true;
}

bool TfBfcPeer::IsIdle(const TfBfcRegions::Region& region) const {
  for (Handle at = regions_.HandleOf(region.begin); at != kNone;
       at = chunks_[at].next) {
    if (chunks_[at].in_use()) return false;
  }
  return true;
}

void TfBfcPeer::FreeRegion(const TfBfcRegions::Region& region) {
  for (Handle at = regions_.HandleOf(region.begin); at != kNone;) {
    const Handle next = chunks_[at].next;
    RemoveFromBin(at);
    DeleteChunk(at);
    at = next;
  }
  regions_.Remove(region.begin);
  stats_.reserved_bytes -= region.bytes;
  RequireSuccess(device_.MemFree(region.begin), DeviceCall::kMemFree);
}

// R38, R39.
bool TfBfcPeer::MergeStamped(std::size_t required) {
  bool is_satisfied = required == 0;
  for (const DevicePtr address : TakeMergeable(/*takes_all=*/required > 0)) {
    const Handle handle = regions_.HandleOf(address);
    if (handle == kNone) continue;  // joined to another chunk meanwhile
    if (required > 0 && is_satisfied) {
      waiting_.push_back(address);
      continue;
    }
    RemoveFromBin(handle);
    const Handle merged = Coalesce(handle, /*ignores_stamps=*/required > 0);
    InsertIntoBin(merged);
    if (required == 0) continue;
    const Chunk& chunk = chunks_[merged];
    if (merged != handle && chunk.freed_at > 0) {
      waiting_.push_back(chunk.address);
    }
    is_satisfied = chunk.bytes >= required;
  }
  return is_satisfied;
}

// Removes from the queue the waiting chunks that may be joined, and chunks that
// no longer wait. Clears safe stamps.
std::vector<DevicePtr> TfBfcPeer::TakeMergeable(bool takes_all) {
  std::vector<DevicePtr> mergeable;
  std::deque<DevicePtr> rest;
  for (const DevicePtr address : waiting_) {
    const Handle handle = regions_.HandleOf(address);
    if (handle == kNone || chunks_[handle].bin == kNoBin) continue;
    Chunk& chunk = chunks_[handle];
    if (chunk.freed_at < safe_frontier_) chunk.freed_at = 0;
    if (chunk.freed_at == 0 || takes_all) {
      mergeable.push_back(address);
    } else {
      rest.push_back(address);
    }
  }
  waiting_.swap(rest);
  return mergeable;
}

std::vector<std::size_t> TfBfcPeer::RegionBytes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::size_t> bytes;
  for (const TfBfcRegions::Region& region : regions_.List()) {
    bytes.push_back(region.bytes);
  }
  return bytes;
}

std::size_t TfBfcPeer::growth_hint_bytes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return hint_bytes_;
}

std::vector<std::pair<DevicePtr, std::uint64_t>> TfBfcPeer::Waiting() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::pair<DevicePtr, std::uint64_t>> waiting;
  for (const DevicePtr address : waiting_) {
    const Handle handle = regions_.HandleOf(address);
    waiting.emplace_back(address, chunks_[handle].freed_at);
  }
  return waiting;
}

}  // namespace strata::peers
