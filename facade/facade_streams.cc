// The functions of AllocatorFacade for streams: handles, default streams,
// marks, and the end of streams.

#include <cstdint>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "strata/allocation/block_flags.h"
#include "strata/allocation/error.h"
#include "strata/allocation/streams/timeline_table.h"
#include "strata/facade/allocator_facade.h"
#include "strata/facade/chains/front.h"
#include "strata/facade/graphs/graph_pools.h"
#include "strata/facade/place_state.h"
#include "strata/facade/thread_ends.h"

namespace strata {
namespace {

bool IsDefault(Stream stream) {
  return reinterpret_cast<std::uintptr_t>(stream.handle) <= kPerThreadHandle;
}

bool HasMemory(const Allocation& allocation) {
  return !HasFlag(*allocation.block(), kBlockZeroSize);
}

}  // namespace

Stream AllocatorFacade::Wrap(void* stream_handle, int device) {
  if (!platform_->HasDevice(device)) {
    throw std::invalid_argument("there is no device " + std::to_string(device));
  }
  Device& on = platform_->device(device);
  // The driver's fixed names need no driver call.
  const auto name = reinterpret_cast<std::uintptr_t>(stream_handle);
  if (name == kPerThreadHandle) return on.PerThreadStream();
  if (name < kPerThreadHandle) return on.LegacyStream();
  Stream stream;
  // The lookup ends captures of a thread that is not relaxed.
  const CaptureGate::RelaxedScope relaxed(graph_pools_->gate(), &on);
  if (!relaxed) ThrowNotRelaxed("Wrap");
  const Status status = on.WrapStream(stream_handle, &stream);
  if (status != Status::kSuccess) {
    throw std::invalid_argument(
        "device " + std::to_string(device) + ": handle " +
        std::to_string(reinterpret_cast<std::uintptr_t>(stream_handle)) +
        " is no stream: " + ToString(status) +
        (graph_pools_->gate().any() ? "" : CaptureHint(status)));
  }
  return stream;
}

void AllocatorFacade::CheckStream(Stream stream) {
  if (IsDefault(stream)) return;
  Device& device = platform_->device(stream.device);
  CaptureStatus status = CaptureStatus::kNone;
  if (device.caps().capture &&
      device.StreamIsCapturing(stream, &status) == Status::kSuccess &&
      status != CaptureStatus::kNone) {
    // The stream exists, but its handle cannot be looked up now.
    if (graph_pools_->gate().any()) return;
    throw std::logic_error("stream " + std::to_string(stream.uid) +
                           " is capturing" +
                           CaptureHint(Status::kStreamCaptureUnsupported));
  }
  Stream now;
  const CaptureGate::RelaxedScope relaxed(graph_pools_->gate(), &device);
  if (!relaxed) return;  // a later call checks the handle
  const Status answer = device.WrapStream(stream.handle, &now);
  if (answer == Status::kSuccess && now == stream) return;
  // Close its chains, because the handle may name another stream next.
  if (answer == Status::kSuccess || answer == Status::kInvalidResourceHandle) {
    timelines_->Lose(stream);
    EndLostStreams();
  }
  ThrowStale(stream, now);
}

void AllocatorFacade::ThrowNotRelaxed(const char* call) {
  throw DeviceError(std::string(call) +
                        " beside a capture: cannot relax the thread's capture "
                        "mode",
                    Status::kNotReady);
}

void AllocatorFacade::ThrowStale(Stream stream, Stream now) {
  std::string text = "stream " + std::to_string(stream.uid) + " of device " +
                     std::to_string(stream.device) + " no longer exists";
  if (now.uid != 0) {
    text += ": its handle was recycled for stream " + std::to_string(now.uid);
  }
  throw std::invalid_argument(text +
                              "; announce a stream's end with StreamDestroyed");
}

void AllocatorFacade::SetDefaultStream(Place place, Stream stream) {
  GetAllocator(place, stream);  // checks place and stream
  PlaceState& state = Find(place);
  if (!state.has_streams()) {
    throw std::invalid_argument("SetDefaultStream: memory of " +
                                ToString(place) + " belongs to no stream");
  }
  state.SetDefault(stream);
}

Stream AllocatorFacade::GetDefaultStream(Place place) {
  return Find(place).DefaultFront().stream();
}

void AllocatorFacade::StreamDestroyed(Stream stream) {
  if (stream.uid == 0 || !platform_->HasDevice(stream.device)) {
    throw std::invalid_argument("StreamDestroyed: the stream names none");
  }
  if (IsDefault(stream)) {
    throw std::invalid_argument(
        "StreamDestroyed: a default stream lives as long as its device, or as "
        "its thread; the facade notices the end of a thread");
  }
  ForEachState([stream](PlaceState& state) {
    if (state.has_streams() && state.DefaultFront().stream() == stream) {
      throw std::invalid_argument(
          "StreamDestroyed: it is the default stream of " +
          ToString(state.place()));
    }
  });
  EndLostStreams();
  EndStream(stream);
}

void AllocatorFacade::EndOfThread(const Stream& stream) {
  bool is_a_default = false;
  ForEachState([&](PlaceState& state) {
    is_a_default |=
        state.has_streams() && state.DefaultFront().stream() == stream;
  });
  // Each place needs a default stream.
  if (!is_a_default) EndStream(stream);
}

void AllocatorFacade::ForbidWaits(Stream stream) {
  RequireMarkable("ForbidWaits", stream);
  timelines_->ForbidWaits(stream);
}

void AllocatorFacade::ObserveLostStreams(std::function<void(Stream)> observer) {
  lost_observer_ = std::move(observer);
}

void AllocatorFacade::EndLostStreams() {
  while (timelines_->any_lost() && !graph_pools_->gate().any()) {
    const Stream lost = timelines_->TakeLost();
    if (lost.uid == 0) return;
    try {
      EndOfThread(lost);
      if (lost_observer_) lost_observer_(lost);
    } catch (const std::bad_alloc&) {
      return timelines_->ReturnLost(lost);
    }
  }
}

void AllocatorFacade::EndStream(const Stream& stream) {
  const CaptureGate::RelaxedScope relaxed(graph_pools_->gate(),
                                          &platform_->device(stream.device));
  // A capture of the stream may have ended without an announcement; later the
  // stream cannot be queried. Work that waited for that end would now wait for
  // the device. So it is left to a call that needs memory, or releases some.
  Device& device = platform_->device(stream.device);
  bool is_any_over = graph_pools_->CloseEnded(device);
  ForEachState([stream](PlaceState& state) { state.TellOfEnd(stream); });
  // Needed also where no layer stores marks.
  timelines_->StreamDestroyed(stream);
  // The stream will not begin a capture that was announced.
  is_any_over |= graph_pools_->CloseEnded(device);
  ForEachState([&](PlaceState& state) {
    if (state.has_streams()) state.Retire(stream);
    // Waiting requests may use memory that waited for the capture.
    if (is_any_over) state.reclaimer()->retry().NotifyFree(0);
  });
}

void AllocatorFacade::RequireMarkable(const char* what, Stream stream) {
  if (stream.uid == 0 || !platform_->HasDevice(stream.device)) {
    throw std::invalid_argument(std::string(what) + ": the stream names none");
  }
  if (options_.check_streams) CheckStream(stream);
}

bool AllocatorFacade::RecordStream(Allocation& allocation, Stream stream) {
  if (!HasMemory(allocation)) return false;
  RequireMarkable("RecordStream", stream);
  return allocation.owner()->RecordStream(&allocation, stream);
}

bool AllocatorFacade::RecordUse(Allocation& allocation, Stream stream,
                                Event event) {
  if (!HasMemory(allocation)) return false;
  RequireMarkable("RecordUse", stream);
  if (!event) throw std::invalid_argument("RecordUse: there is no event");
  return allocation.owner()->RecordUse(&allocation, stream, event);
}

void AllocatorFacade::EraseStream(Allocation& allocation, Stream stream) {
  if (HasMemory(allocation)) {
    allocation.owner()->EraseStream(&allocation, stream);
  }
}

void AllocatorFacade::Free(AllocationPtr&& allocation, Stream stream) {
  if (allocation == nullptr) return;
  RecordStream(*allocation, stream);
  allocation.reset();
}

Stream AllocatorFacade::GetStream(const Allocation& allocation) {
  return HasMemory(allocation) ? allocation.owner()->stream()
                               : GetDefaultStream(allocation.place());
}

}  // namespace strata
