#include "strata/platform/sim/graphs/graph_memory.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "strata/platform/sim/memory/frame_table.h"
#include "strata/platform/sim/memory/recycled_map.h"

namespace strata::sim {
namespace {

Access RightOf(const GraphRights& rights, int device) {
  const auto found = rights->find(device);
  return found == rights->end() ? Access::kNone : found->second;
}

}  // namespace

GraphMemory::GraphMemory(int device, DeviceMemory* memory)
    : device_(device),
      memory_(memory),
      lane_(kGraphWindows.BeginOf(device), kGraphWindowBytes),
      frames_(memory) {}

std::optional<GraphHeap::Chunk> GraphMemory::Grow(
    std::uint64_t bytes, const std::shared_ptr<GraphHeap>& heap,
    const StreamOrder& order) {
  const std::uint64_t frames = FramesFor(bytes);
  const std::uint64_t chunk_bytes = frames * kFrameBytes;
  if (chunk_bytes > memory_->total_bytes()) return std::nullopt;
  auto ptr = lane_.Take(chunk_bytes, kFrameBytes);
  if (!ptr) {
    Sweep(order);
    ptr = lane_.TakeLowest(chunk_bytes, kFrameBytes);
  }
  if (!ptr) return std::nullopt;
  Chunk chunk;
  chunk.bytes = chunk_bytes;
  chunk.heap = heap;
  chunk.bound.assign(frames, kNoFrame);
  chunk.mapped = chunk.bound;
  chunks_.emplace(*ptr, std::move(chunk));
  return GraphHeap::Chunk{*ptr, chunk_bytes};
}

void GraphMemory::Shrink(DevicePtr chunk) { Forget(chunks_.find(chunk)); }

std::shared_ptr<GraphHeap> GraphMemory::HeapOf(DevicePtr ptr) const {
  const auto chunk = ChunkAt(ptr);
  return chunk == chunks_.end() ? nullptr : chunk->second.heap.lock();
}

std::vector<DevicePtr> GraphMemory::LiveOf(const GraphHeapUse& use) const {
  std::vector<DevicePtr> found;
  for (const DevicePtr chunk : use.chunks) {
    for (auto live = live_.lower_bound(chunk);
         live != live_.end() && live->second.chunk == chunk; ++live) {
      found.push_back(live->first);
    }
  }
  return found;
}

void GraphMemory::FreeLive(DevicePtr ptr, const StreamSnapshot& point) {
  const auto live = live_.find(ptr);
  Chunk& chunk = chunks_.at(live->second.chunk);
  chunk.uses.push_back(point);
  --chunk.live;
  for (const FrameNumber frame : chunk.bound) {
    frames_.AddUse(frame, live->second.chunk, point.point);
    if (chunk.live == 0) frames_.Unpin(frame);
  }
  live_.erase(live);
}

std::uint64_t GraphMemory::live_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [ptr, live] : live_) bytes += live.bytes;
  return bytes;
}

std::optional<GraphMemory::Binding> GraphMemory::Plan(
    const GraphHeapUse& use, const Stream& stream, const StreamOrder& order) {
  Binding binding = Reuse(use, stream, order);
  const std::uint64_t missing = Missing(binding);
  auto fresh = frames_.Take(missing);
  if (!fresh) return std::nullopt;
  binding.fresh = std::move(*fresh);
  std::size_t next = 0;
  for (Binding::Part& part : binding.parts) {
    for (FrameNumber& frame : part.frames) {
      if (frame == kNoFrame) frame = binding.fresh[next++];
    }
  }
  return binding;
}

void GraphMemory::Undo(const Binding& binding) {
  for (const FrameNumber frame : binding.fresh) frames_.Give(frame);
}

std::uint64_t GraphMemory::MissingFrames(const GraphHeapUse& use,
                                         const Stream& stream,
                                         const StreamOrder& order) const {
  return Missing(Reuse(use, stream, order));
}

// The frames that a launch can use without new ones; kNoFrame where it needs a
// new frame.
GraphMemory::Binding GraphMemory::Reuse(const GraphHeapUse& use,
                                        const Stream& stream,
                                        const StreamOrder& order) const {
  Binding binding;
  std::set<FrameNumber> taken;
  const auto take = [&](FrameNumber frame, DevicePtr chunk) {
    return frame != kNoFrame && taken.count(frame) == 0 &&
           frames_.IsUsable(frame, chunk, stream, order) &&
           taken.insert(frame).second;
  };
  for (const DevicePtr ptr : use.chunks) {
    Binding::Part part{ptr, chunks_.at(ptr).bound};
    for (FrameNumber& frame : part.frames) {
      if (!take(frame, ptr)) frame = kNoFrame;
    }
    binding.parts.push_back(std::move(part));
  }
  if (Missing(binding) == 0) return binding;
  const std::vector<FrameNumber> others = frames_.All();
  for (Binding::Part& part : binding.parts) {
    for (FrameNumber& frame : part.frames) {
      if (frame != kNoFrame) continue;
      const auto found = std::find_if(
          others.begin(), others.end(),
          [&](FrameNumber other) { return take(other, part.chunk); });
      if (found == others.end()) return binding;
      frame = *found;
    }
  }
  return binding;
}

std::uint64_t GraphMemory::Missing(const Binding& binding) {
  std::uint64_t missing = 0;
  for (const Binding::Part& part : binding.parts) {
    missing += static_cast<std::uint64_t>(
        std::count(part.frames.begin(), part.frames.end(), kNoFrame));
  }
  return missing;
}

std::vector<StreamSnapshot> GraphMemory::UsesOf(const GraphHeapUse& use) const {
  std::vector<StreamSnapshot> uses;
  for (const DevicePtr ptr : use.chunks) {
    const Chunk& chunk = chunks_.at(ptr);
    uses.insert(uses.end(), chunk.uses.begin(), chunk.uses.end());
  }
  return uses;
}

void GraphMemory::Commit(const GraphHeapUse& use, const Binding& binding,
                         const StreamSnapshot& end, const StreamOrder& order) {
  for (const Binding::Part& part : binding.parts) {
    Chunk& chunk = chunks_.at(part.chunk);
    chunk.bound = part.frames;
    chunk.uses = {end};
    for (const FrameNumber frame : part.frames) {
      frames_.SetUse(frame, part.chunk, end.point);
    }
  }
  for (const GraphAllocation& allocation : use.escaping) {
    const auto found = std::prev(chunks_.upper_bound(allocation.ptr));
    Chunk& chunk = found->second;
    ++chunk.live;
    live_[allocation.ptr] = {allocation.bytes, found->first, allocation.rights};
    for (const FrameNumber frame : chunk.bound) {
      frames_.Pin(frame, found->first);
    }
  }
  Sweep(order);
  used_high_ = std::max(used_high_, UsedFrames(order));
  reserved_high_ = std::max(reserved_high_, frames_.size());
}

void GraphMemory::Bind(const Binding& binding) {
  for (const Binding::Part& part : binding.parts) {
    Chunk& chunk = chunks_.at(part.chunk);
    if (chunk.mapped == part.frames) continue;
    chunk.mapped = part.frames;
    memory_->DropViews(part.chunk, chunk.bytes);
  }
}

void GraphMemory::Begin(DevicePtr ptr, std::uint64_t bytes,
                        const GraphRights& rights) {
  const auto found = std::prev(chunks_.upper_bound(ptr));
  Chunk& chunk = found->second;
  chunk.present[ptr] = {bytes, rights};
  VisitRuns(chunk, ptr - found->first, bytes,
            [this](const PhysicalRun& run) { memory_->NoteFresh(run); });
}

void GraphMemory::End(DevicePtr ptr) {
  const auto found = std::prev(chunks_.upper_bound(ptr));
  Chunk& chunk = found->second;
  const auto present = chunk.present.find(ptr);
  if (present == chunk.present.end()) return;  // the launch failed before
  VisitRuns(chunk, ptr - found->first, present->second.bytes,
            [this](const PhysicalRun& run) { memory_->NoteFreed(run); });
  chunk.present.erase(present);
}

template <class Visit>
void GraphMemory::VisitRuns(const Chunk& chunk, std::uint64_t offset,
                            std::uint64_t bytes, Visit visit) {
  while (bytes > 0) {
    const std::uint64_t in_frame = offset % kFrameBytes;
    const std::uint64_t count = std::min(bytes, kFrameBytes - in_frame);
    const FrameNumber frame =
        chunk.mapped[static_cast<std::size_t>(offset / kFrameBytes)];
    visit(PhysicalRun{frame * kFrameBytes + in_frame, count});
    offset += count;
    bytes -= count;
  }
}

void GraphMemory::Trim(const StreamOrder& order) {
  std::set<FrameNumber> gone;
  for (const FrameNumber frame : frames_.All()) {
    if (frames_.IsIdle(frame, order)) gone.insert(frame);
  }
  for (auto& [ptr, chunk] : chunks_) {
    bool dropped = false;
    for (std::size_t i = 0; i < chunk.bound.size(); ++i) {
      if (gone.count(chunk.bound[i]) != 0) chunk.bound[i] = kNoFrame;
      if (gone.count(chunk.mapped[i]) == 0) continue;
      chunk.mapped[i] = kNoFrame;
      dropped = true;
    }
    if (dropped) memory_->DropViews(ptr, chunk.bytes);
  }
  for (const FrameNumber frame : gone) frames_.Give(frame);
  Sweep(order);
}

std::uint64_t GraphMemory::Attribute(GraphMemAttributeKind kind,
                                     const StreamOrder& order) const {
  switch (kind) {
    case GraphMemAttributeKind::kUsedCurrent:
      return UsedFrames(order) * kFrameBytes;
    case GraphMemAttributeKind::kUsedHigh:
      return used_high_ * kFrameBytes;
    case GraphMemAttributeKind::kReservedCurrent:
      return frames_.size() * kFrameBytes;
    case GraphMemAttributeKind::kReservedHigh:
      break;
  }
  return reserved_high_ * kFrameBytes;
}

// Frames of live allocations and of allocations of instantiated graphs.
std::uint64_t GraphMemory::UsedFrames(const StreamOrder& order) const {
  std::set<FrameNumber> used;
  for (const auto& [ptr, chunk] : chunks_) {
    const auto heap = chunk.heap.lock();
    const bool has_instance = heap != nullptr && !heap->instance.expired();
    if (!has_instance && chunk.live == 0 && IsDone(chunk, order)) continue;
    used.insert(chunk.bound.begin(), chunk.bound.end());
  }
  used.erase(kNoFrame);
  return used.size();
}

bool GraphMemory::IsDone(const Chunk& chunk, const StreamOrder& order) {
  return std::all_of(
      chunk.uses.begin(), chunk.uses.end(),
      [&](const StreamSnapshot& use) { return order.IsDone(use.point); });
}

void GraphMemory::Sweep(const StreamOrder& order) {
  for (auto it = chunks_.begin(); it != chunks_.end();) {
    const Chunk& chunk = it->second;
    if (!chunk.heap.expired() || chunk.live != 0 || !IsDone(chunk, order)) {
      ++it;
      continue;
    }
    it = Forget(it);
  }
}

// Returns the next chunk.
GraphMemory::Chunks::iterator GraphMemory::Forget(Chunks::iterator chunk) {
  memory_->DropViews(chunk->first, chunk->second.bytes);
  lane_.Give(chunk->first, chunk->second.bytes);
  return chunks_.erase(chunk);
}

GraphMemory::Chunks::const_iterator GraphMemory::ChunkAt(DevicePtr ptr) const {
  return FindCovering(chunks_, ptr, 1);
}

const GraphMemory::Live* GraphMemory::LiveAt(DevicePtr ptr,
                                             std::uint64_t bytes) const {
  const auto live = FindCovering(live_, ptr, bytes);
  return live != live_.end() ? &live->second : nullptr;
}

std::optional<Access> GraphMemory::AccessOnSubmission(DevicePtr ptr,
                                                      std::uint64_t bytes,
                                                      int device) const {
  const Live* live = LiveAt(ptr, bytes);
  if (live == nullptr) return std::nullopt;
  return RightOf(live->rights, device);
}

bool GraphMemory::IsPromised(DevicePtr ptr, std::uint64_t bytes) const {
  const auto chunk = FindCovering(chunks_, ptr, bytes);
  return chunk != chunks_.end() &&
         (IsLive(ptr, bytes) || !chunk->second.heap.expired());
}

std::optional<Access> GraphMemory::AccessOf(DevicePtr ptr, std::uint64_t bytes,
                                            int device) const {
  const auto chunk = ChunkAt(ptr);
  if (chunk == chunks_.end()) return std::nullopt;
  const auto& present = chunk->second.present;
  const auto found = FindCovering(present, ptr, bytes);
  if (found == present.end()) return std::nullopt;
  return RightOf(found->second.rights, device);
}

std::optional<MappedMemory::Place> GraphMemory::Locate(DevicePtr ptr) const {
  const auto chunk = ChunkAt(ptr);
  if (chunk == chunks_.end()) return std::nullopt;
  const std::uint64_t offset = ptr - chunk->first;
  const FrameNumber frame =
      chunk->second.mapped[static_cast<std::size_t>(offset / kFrameBytes)];
  if (frame == kNoFrame) return std::nullopt;
  const std::uint64_t in_frame = offset % kFrameBytes;
  return Place{device_, PhysicalRun{frame * kFrameBytes + in_frame,
                                    kFrameBytes - in_frame}};
}

}  // namespace strata::sim
