// Memory that calls allocate and free, and its uses by work.

#include <algorithm>
#include <utility>

#include "strata/platform/check/hazard_checker.h"

namespace strata::check {

bool HazardChecker::ObserveUses(const CallRecord& record) {
  switch (record.call) {
    case DeviceCall::kUse:
      if (record.bytes != 0) {
        Use(record, {{record.ptr, record.bytes, record.value != 0}});
      }
      return true;
    case DeviceCall::kMemsetAsync:
      if (record.bytes != 0) Use(record, {{record.ptr, record.bytes, true}});
      return true;
    case DeviceCall::kMemcpyAsync:
      if (record.bytes == 0) return true;
      Use(record, {{record.value, record.bytes, false},
                   {record.ptr, record.bytes, true}});
      // A copy to pageable memory is complete when the call returns: H6.
      if (!captures_.Find(record.stream_uid) &&
          memory_.Pieces(record.ptr, record.bytes).empty() &&
          !memory_.Pieces(record.value, record.bytes).empty()) {
        order_.AwaitStream({record.device, record.stream_uid}, record.thread);
      }
      return true;
    default:
      return false;
  }
}

bool HazardChecker::ObserveMemory(const CallRecord& record) {
  switch (record.call) {
    case DeviceCall::kMemAlloc:
    case DeviceCall::kMallocManaged:
      if (record.ptr == 0 || record.bytes == 0) return true;
      memory_.Add(RegionKind::kDevice, record.ptr, record.bytes, now_);
      shadow_.Erase(0, record.ptr, record.ptr + record.bytes);
      return true;
    case DeviceCall::kMallocHost:
    case DeviceCall::kHostRegister:
      if (record.ptr == 0 || record.bytes == 0) return true;
      memory_.Add(RegionKind::kHost, record.ptr, record.bytes, now_);
      shadow_.Erase(0, record.ptr, record.ptr + record.bytes);
      return true;
    case DeviceCall::kMemFree:
    case DeviceCall::kFreeHost:
    case DeviceCall::kHostUnregister:
      GiveBack(record.ptr, HazardKind::kFreeInUse,
               order_.OfThread(record.thread));
      return true;
    default:
      return false;
  }
}

bool HazardChecker::ObservePools(const CallRecord& record) {
  if (record.call != DeviceCall::kMallocFromPoolAsync &&
      record.call != DeviceCall::kFreeAsync) {
    return false;
  }
  if (record.ptr == 0) return true;
  const StreamName stream{record.device, record.stream_uid};
  const CaptureModel::Place place = captures_.Find(record.stream_uid);
  const bool allocates = record.call == DeviceCall::kMallocFromPoolAsync;
  if (place) {
    allocates ? AllocateInCapture(place, record) : FreeInCapture(place, record);
    return true;
  }
  const Epoch epoch = order_.Submit(stream, record.thread);
  if (!allocates) {
    GiveBack(record.ptr, HazardKind::kUseAfterFree, order_.OfStream(stream));
    return true;
  }
  // The pool has ordered this after the former uses of its memory: R7.
  shadow_.Erase(0, record.ptr, record.ptr + record.bytes);
  memory_.Add(RegionKind::kPool, record.ptr, record.bytes, now_)->begins =
      epoch;
  return true;
}

bool HazardChecker::ObserveVirtual(const CallRecord& record) {
  switch (record.call) {
    case DeviceCall::kCreateMemory:
    case DeviceCall::kImportMemory:
      memory_.CreatePhysical(record.ptr);
      return true;
    case DeviceCall::kRetainMemory:
      memory_.RetainPhysical(record.value, record.ptr);
      return true;
    case DeviceCall::kReleaseMemory:
      if (const std::uint64_t space = memory_.ReleasePhysical(record.ptr)) {
        shadow_.EraseSpace(space);
      }
      return true;
    case DeviceCall::kMapRange:
      memory_.Map(record.ptr, record.bytes, record.value, now_);
      return true;
    case DeviceCall::kUnmapRange:
      for (const auto& region :
           memory_.FindMappings(record.ptr, record.bytes)) {
        GiveBackRegion(region, HazardKind::kUnmapInUse,
                       order_.OfThread(record.thread));
      }
      return true;
    default:
      return false;
  }
}

void HazardChecker::Use(const CallRecord& record,
                        const std::vector<Range>& ranges) {
  const CaptureModel::Place place = captures_.Find(record.stream_uid);
  if (place) {
    UseInCapture(place, record, ranges);
    return;
  }
  const StreamName stream{record.device, record.stream_uid};
  const Epoch epoch = order_.Submit(stream, record.thread);
  const OrderClock& before = order_.OfStream(stream);
  for (const Range& range : ranges) UseRange(range, epoch, before);
}

void HazardChecker::UseRange(const Range& range, const Epoch& epoch,
                             const OrderClock& before) {
  if (const auto gone = memory_.FindGone(range.ptr, range.bytes)) {
    log_.Add(Report(HazardKind::kUseAfterFree, *gone->life.freed,
                    {range.ptr, range.bytes},
                    "the memory was freed before the use", gone->life));
  }
  for (const MemoryMap::Piece& piece : memory_.Pieces(range.ptr, range.bytes)) {
    UsePiece(piece, range.write, epoch, before);
  }
}

void HazardChecker::UsePiece(const MemoryMap::Piece& piece, bool write,
                             const Epoch& epoch, const OrderClock& before) {
  CheckBegins(*piece.region, before);
  shadow_.VisitPiece(
      piece, [&](MemorySegment& segment, const ReportedRange& range) {
        const MemoryUse use{epoch, segment.life, piece.region->id, write, now_};
        if (segment.life != nullptr && segment.life->freed) {
          log_.Add(Report(HazardKind::kUseAfterFree, *segment.life->freed,
                          range, "the block was freed before the use",
                          LifeOf(segment.life)));
        }
        CheckUse(segment, use, before, range, ToLog());
        segment.Add(use);
      });
}

void HazardChecker::CheckBegins(const MemoryRegion& region,
                                const OrderClock& before) {
  const bool is_ordered =
      region.kind == RegionKind::kPool || region.kind == RegionKind::kGraph;
  if (!is_ordered || (region.begins && before.Covers(*region.begins))) return;
  const ReportedRange range{region.life.ptr, region.life.bytes};
  const bool is_freed = region.life.freed.has_value();
  HazardReport report =
      is_freed
          ? Report(HazardKind::kUseAfterFree, *region.life.freed, range,
                   "the memory was freed before the use")
          : Report(HazardKind::kUseBeforeAlloc, region.life.allocated, range,
                   std::string("stream ")
                       .append(std::to_string(now_.stream_uid))
                       .append(" never waited for the allocation"));
  report.second_life = region.life;
  log_.Add(std::move(report));
}

void HazardChecker::GiveBack(std::uint64_t ptr, HazardKind kind,
                             const OrderClock& before) {
  const std::shared_ptr<MemoryRegion> region = memory_.Find(ptr);
  if (region != nullptr) GiveBackRegion(region, kind, before);
}

void HazardChecker::GiveBackRegion(const std::shared_ptr<MemoryRegion>& region,
                                   HazardKind kind, const OrderClock& before) {
  const bool is_mapping = region->kind == RegionKind::kMapping;
  const std::uint64_t first = region->offset;
  const std::uint64_t last = first + region->life.bytes;
  shadow_.VisitKnown(
      region->space, first, last,
      [&](const MemorySegment& segment, std::uint64_t begin,
          std::uint64_t end) {
        const std::uint64_t from = std::max(first, begin);
        const ReportedRange range{region->life.ptr + (from - first),
                                  std::min(last, end) - from};
        CheckGivenBack(segment, now_, before, kind, is_mapping ? region->id : 0,
                       range, ToLog());
      });
  if (region->kind == RegionKind::kGraph) {
    // The next launch allocates it again, at the same addresses. The driver
    // orders that after the former uses: R7.
    shadow_.Erase(0, first, last);
    region->begins.reset();
    region->life.freed = now_;
    return;
  }
  if (is_mapping) {
    shadow_.VisitRange(region->space, first, last,
                       [&](MemorySegment& segment, std::uint64_t,
                           std::uint64_t) { segment.EndRegion(region->id); });
  } else {
    shadow_.Erase(0, first, last);
  }
  if (const std::uint64_t space = memory_.Remove(region, now_)) {
    shadow_.EraseSpace(space);
  }
}

}  // namespace strata::check
