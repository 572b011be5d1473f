// Events.

#include "strata/platform/simdriver/context.h"
#include "strata/platform/simdriver/host_reads.h"

namespace strata::simdriver {
namespace {

// Runs `body(SimDevice&, Event)` on the device that made `event`.
template <class Body>
CUresult OnEvent(CUevent handle, Body body) {
  return OnCurrentDevice([&](SimDevice&) {
    const Event event{handle};
    SimDevice* const owner = FindProcess()->platform.OwnerOf(event);
    return owner != nullptr ? std::invoke(body, *owner, event)
                            : Status::kInvalidResourceHandle;
  });
}

}  // namespace

CUresult EventCreate(CUevent* event, unsigned flags) {
  return OnCurrentDevice([&](SimDevice& device) {
    return PutMade(event, device, &SimDevice::EventCreate, flags);
  });
}

CUresult EventDestroy(CUevent event) {
  return OnEvent(event, &SimDevice::EventDestroy);
}

CUresult EventQuery(CUevent event) {
  return OnEvent(event, &SimDevice::EventQuery);
}

CUresult EventSynchronize(CUevent event) {
  return OnEvent(event, [](SimDevice& device, Event waited) {
    const Status status = device.EventSynchronize(waited);
    Reads().AfterWait();
    return status;
  });
}

CUresult EventElapsedTime(float* ms, CUevent start, CUevent end) {
  return OnCurrentDevice([&](SimDevice& device) {
    if (ms == nullptr) return Status::kInvalidValue;
    std::int64_t ns = 0;
    const Status status = device.EventElapsed({start}, {end}, &ns);
    if (status == Status::kSuccess) *ms = static_cast<float>(ns) / 1e6f;
    return status;
  });
}

#if CUDA_VERSION >= 12080
CUresult EventElapsedTime2(float* ms, CUevent start, CUevent end) {
  return EventElapsedTime(ms, start, end);
}
#endif

CUresult EventRecord(NullStream null, CUevent event, CUstream stream) {
  return EventRecordWithFlags(null, event, stream, CU_EVENT_RECORD_DEFAULT);
}

CUresult EventRecordWithFlags(NullStream null, CUevent event, CUstream handle,
                              unsigned flags) {
  return OnStream(null, handle, [&](SimDevice& device, const Stream& stream) {
    return device.EventRecord({event}, stream, flags);
  });
}

}  // namespace strata::simdriver
