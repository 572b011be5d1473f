#include "strata/platform/check/hazard_checker.h"

#include <utility>

#include "strata/platform/stream.h"

namespace strata::check {
namespace {

std::uint64_t TagOf(const CallRecord& record) {
  return record.ptr != 0 ? record.ptr : HappensBefore::TagOf(record.device);
}

}  // namespace

HazardChecker::HazardChecker(HazardHandler handler)
    : log_(std::move(handler)) {}

void HazardChecker::Observe(const CallRecord& record) {
  now_ = {record, ++records_};
  // A failed call changed nothing, except for the end of a capture.
  if (record.status != Status::kSuccess) {
    const bool ended = record.call == DeviceCall::kStreamEndCapture &&
                       (record.status == Status::kStreamCaptureInvalidated ||
                        record.status == Status::kStreamCaptureUnjoined ||
                        record.status == Status::kStreamCaptureWrongThread);
    if (ended) captures_.Abandon(record.stream_uid);
    // The named nodes were operands of this call only.
    if (record.call == DeviceCall::kStreamBeginCaptureToGraph ||
        record.call == DeviceCall::kStreamUpdateCaptureDependencies) {
      dependencies_.erase(record.thread);
    }
    return;
  }
  ObserveUses(record) || ObserveBlocks(record) || ObserveStreams(record) ||
      ObserveEvents(record) || ObserveMemory(record) || ObservePools(record) ||
      ObserveVirtual(record) || ObserveCapture(record) || ObserveGraphs(record);
}

bool HazardChecker::ObserveStreams(const CallRecord& record) {
  const StreamName stream{record.device, record.stream_uid};
  switch (record.call) {
    case DeviceCall::kStreamCreate:
      order_.CreateStream(stream, (record.value & kStreamNonBlocking) == 0,
                          record.thread);
      return true;
    case DeviceCall::kWrapStream:
      order_.WrapStream(stream, (record.value & kStreamNonBlocking) == 0);
      return true;
    case DeviceCall::kStreamDestroy:
      order_.DestroyStream(stream);
      return true;
    case DeviceCall::kStreamSynchronize:
    case DeviceCall::kStreamQuery:
      order_.AwaitStream(stream, record.thread);
      return true;
    case DeviceCall::kSynchronize:
      order_.AwaitDevice(record.device, record.thread);
      return true;
    case DeviceCall::kHostRelease:
      order_.Release(TagOf(record), record.thread);
      return true;
    case DeviceCall::kHostAcquire:
      order_.Acquire(TagOf(record), record.thread);
      return true;
    case DeviceCall::kLaunchHostFunc:
      Use(record, {});
      return true;
    default:
      return false;
  }
}

bool HazardChecker::ObserveEvents(const CallRecord& record) {
  switch (record.call) {
    case DeviceCall::kEventCreate:
    case DeviceCall::kEventDestroy:
      order_.ForgetEvent(record.ptr);
      captures_.ForgetEvent(record.ptr);
      return true;
    case DeviceCall::kEventRecord:
      ObserveEventRecord(record);
      return true;
    case DeviceCall::kEventQuery:
    case DeviceCall::kEventSynchronize:
      ObserveEventDone(record);
      return true;
    case DeviceCall::kStreamWaitEvent:
      ObserveWait(record);
      return true;
    default:
      return false;
  }
}

void HazardChecker::ObserveEventRecord(const CallRecord& record) {
  const CaptureModel::Place place = captures_.Find(record.stream_uid);
  if (!place) {
    captures_.ForgetEvent(record.ptr);
    order_.Record(record.ptr, {record.device, record.stream_uid},
                  record.thread);
  } else if ((record.value & kEventExternal) != 0) {
    CaptureModel::AddNode(place, record.node).records = record.ptr;
  } else {
    order_.ForgetEvent(record.ptr);
    captures_.Record(record.ptr, record.stream_uid);
  }
}

void HazardChecker::ObserveEventDone(const CallRecord& record) {
  if (!captures_.IsCaptured(record.ptr)) {
    order_.AwaitEvent(record.ptr, record.thread);
    return;
  }
  log_.Add(Report(HazardKind::kCapturedEvent, now_, {},
                  "the event was last recorded in a capture: it stands for no "
                  "work that was submitted"));
}

void HazardChecker::ObserveWait(const CallRecord& record) {
  const CaptureModel::Place place = captures_.Find(record.stream_uid);
  const bool external = (record.value & kEventExternal) != 0;
  if (!(place && external) && captures_.IsCaptured(record.ptr)) {
    if (captures_.Join(record.stream_uid, record.ptr)) return;
    log_.Add(Report(HazardKind::kCapturedEvent, now_, {},
                    "the capture in which the event was recorded has ended: "
                    "waiting for it orders nothing"));
  } else if (place) {
    CaptureModel::AddNode(place, record.node).waits = record.ptr;
  } else {
    order_.Wait({record.device, record.stream_uid}, record.ptr, record.thread);
  }
}

HazardReport HazardChecker::Report(HazardKind kind, const AccessSite& first,
                                   const ReportedRange& range,
                                   std::string missing,
                                   std::optional<Lifetime> first_life) const {
  HazardReport report;
  report.kind = kind;
  report.first = first;
  report.second = now_;
  report.first_life = std::move(first_life);
  report.ptr = range.ptr;
  report.bytes = range.bytes;
  report.missing = std::move(missing);
  return report;
}

HazardSink HazardChecker::ToLog() {
  return [this](HazardReport report) { log_.Add(std::move(report)); };
}

}  // namespace strata::check
