// Blocks that allocators split off the memory of a device.

#include <algorithm>
#include <utility>

#include "strata/platform/check/hazard_checker.h"

namespace strata::check {

bool HazardChecker::ObserveBlocks(const CallRecord& record) {
  switch (record.call) {
    case DeviceCall::kBlockAlloc:
      if (record.bytes != 0) HandOut(record);
      return true;
    case DeviceCall::kBlockFree:
      TakeBack(record);
      return true;
    case DeviceCall::kBlockMark:
      Mark(record);
      return true;
    default:
      return false;
  }
}

void HazardChecker::HandOut(const CallRecord& record) {
  order_.Acquire(HappensBefore::TagOf(record.device), record.thread);
  auto life = std::make_shared<BlockLife>();
  life->ptr = record.ptr;
  life->bytes = record.bytes;
  life->allocated = now_;
  if (record.stream_uid != 0) life->streams.push_back(record.stream_uid);
  if (const CaptureModel::Place place = captures_.Find(record.stream_uid)) {
    life->capture = place.graph->id;
    life->graph = place.graph->tokens.front();
  }
  auto other = blocks_.lower_bound(record.ptr);
  if (other != blocks_.begin()) --other;
  while (other != blocks_.end() && other->first < record.ptr + record.bytes) {
    const std::shared_ptr<BlockLife>& held = other->second;
    if (held->ptr + held->bytes <= record.ptr) {
      ++other;
      continue;
    }
    HazardReport report = Report(
        HazardKind::kOverlap, held->allocated, {record.ptr, record.bytes},
        "the first block was never freed", LifeOf(held));
    report.second_life = LifeOf(life);
    log_.Add(std::move(report));
    other = blocks_.erase(other);
  }
  for (const MemoryMap::Piece& piece :
       memory_.Pieces(record.ptr, record.bytes)) {
    HandOutPiece(piece, life);
  }
  blocks_[record.ptr] = std::move(life);
}

void HazardChecker::HandOutPiece(const MemoryMap::Piece& piece,
                                 const std::shared_ptr<BlockLife>& life) {
  const std::uint64_t stream = now_.stream_uid;
  const bool is_host = piece.region->kind == RegionKind::kHost;
  const CaptureModel::Place place = captures_.Find(stream);
  const std::uint64_t offset = piece.offset();
  // The predecessors of the stream's next operation, or the work that the host
  // has waited for.
  const OrderClock before =
      is_host || place || stream == 0
          ? order_.OfThread(now_.thread)
          : order_.BeforeNext({now_.device, stream}, now_.thread);
  if (place) {
    place.graph->shadow.VisitKnown(
        piece.region->space, offset, offset + piece.bytes,
        [&](const MemorySegment& segment, std::uint64_t begin,
            std::uint64_t end) {
          const std::uint64_t from = std::max(begin, offset);
          const std::uint64_t to = std::min(end, offset + piece.bytes);
          CheckHandOut(segment, now_, place.member->frontier, is_host,
                       {piece.ptr + (from - offset), to - from},
                       [&](HazardReport report) {
                         report.second_life = LifeOf(life);
                         place.graph->hazards.push_back(std::move(report));
                       });
        });
  }
  shadow_.VisitPiece(piece,
                     [&](MemorySegment& segment, const ReportedRange& range) {
                       // The nodes of a graph come after the predecessors of
                       // its launch.
                       if (!place) {
                         CheckHandOut(segment, now_, before, is_host, range,
                                      [&](HazardReport report) {
                                        report.second_life = LifeOf(life);
                                        log_.Add(std::move(report));
                                      });
                       }
                       segment.Begin(life);
                     });
}

void HazardChecker::TakeBack(const CallRecord& record) {
  const auto found = blocks_.find(record.ptr);
  if (found != blocks_.end()) {
    const std::shared_ptr<BlockLife> life = found->second;
    blocks_.erase(found);
    if (record.stream_uid != 0) UseByStream(record, life, false);
    KeepForCapture(record, *life);
    life->freed = now_;
  }
  order_.Release(HappensBefore::TagOf(record.device), record.thread);
}

void HazardChecker::Mark(const CallRecord& record) {
  const auto found = blocks_.find(record.ptr);
  if (found != blocks_.end() && record.stream_uid != 0) {
    UseByStream(record, found->second, true);
    KeepForCapture(record, *found->second);
  }
}

void HazardChecker::KeepForCapture(const CallRecord& record, BlockLife& life) {
  const CaptureModel::Place place = captures_.Find(record.stream_uid);
  if (place && life.capture != place.graph->id) {
    life.kept_for.push_back(place.graph->id);
  }
}

void HazardChecker::UseByStream(const CallRecord& record,
                                const std::shared_ptr<BlockLife>& life,
                                bool host_too) {
  const std::uint64_t stream = record.stream_uid;
  if (std::find(life->streams.begin(), life->streams.end(), stream) ==
      life->streams.end()) {
    life->streams.push_back(stream);
  }
  const CaptureModel::Place place = captures_.Find(stream);
  // In a capture nothing has run: only blocks of the same graph count.
  if (place && life->capture != place.graph->id) return;
  const StreamName name{record.device, stream};
  // No event ends a use that a graph repeats at each launch.
  const Epoch last = place               ? place.member->last
                     : record.value != 0 ? order_.LastBefore(record.value, name)
                                         : order_.Last(name);
  if (last.count == 0) return;
  for (const MemoryMap::Piece& piece : memory_.Pieces(life->ptr, life->bytes)) {
    // The use of host memory may be by the host alone.
    if (piece.region->kind == RegionKind::kHost && !host_too) continue;
    const MemoryUse use{last, life, piece.region->id, false, now_};
    ShadowMemory& shadow = place ? place.graph->shadow : shadow_;
    shadow.VisitPiece(piece, [&](MemorySegment& segment, const ReportedRange&) {
      segment.AddConcluded(use);
    });
  }
}

}  // namespace strata::check
