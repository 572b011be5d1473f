// The C ABI: streams, and marks on pointers.

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <string>

#include "strata/bindings/c/c_api_call.h"
#include "strata/platform/device.h"

using strata::Allocation;
using strata::FindPointer;
using strata::Status;
using strata::Stream;
using strata::StreamOf;

namespace {

void RequireSuccess(Status status, const char* call) {
  if (status == Status::kSuccess) return;
  throw strata::CallError(STRATA_DEVICE_ERROR,
                          std::string(call) + ": " + strata::ToString(status));
}

// Reserves a stream of strata_stream_create for its destruction, so that no
// other call destroys it. Unless it is destroyed, its entry is restored.
class EndingStream {
 public:
  // Errors: std::invalid_argument if there is no such stream.
  EndingStream(strata_facade& facade, std::int32_t device, void* handle)
      : facade_(facade) {
    const std::lock_guard<std::mutex> guard(facade.mutex);
    for (strata_facade::MadeStream& made : facade.streams) {
      if (made.stream.device != device || made.stream.handle != handle ||
          made.is_ending) {
        continue;
      }
      made.is_ending = true;
      stream_ = made.stream;
      return;
    }
    throw std::invalid_argument("not a stream of strata_stream_create");
  }
  EndingStream(const EndingStream&) = delete;
  EndingStream& operator=(const EndingStream&) = delete;
  ~EndingStream() {
    const std::lock_guard<std::mutex> guard(facade_.mutex);
    const auto found =
        std::find_if(facade_.streams.begin(), facade_.streams.end(),
                     [&](const auto& made) { return made.stream == stream_; });
    found->is_ending = false;
    if (is_destroyed_) facade_.streams.erase(found);
  }

  Status Destroy() {
    const Status status = strata::DestroyStream(facade_, stream_);
    is_destroyed_ = status == Status::kSuccess;
    return status;
  }

 private:
  strata_facade& facade_;
  Stream stream_;
  bool is_destroyed_ = false;
};

}  // namespace

strata_status strata_record_stream(strata_facade* facade, void* pointer,
                                   void* stream) {
  return strata::GuardCall("strata_record_stream", [&] {
    strata::Require(facade, "facade");
    if (pointer == nullptr) return;
    Allocation& allocation = FindPointer(*facade, pointer);
    facade->facade.RecordStream(allocation,
                                StreamOf(*facade, allocation.place(), stream));
  });
}

strata_status strata_record_use(strata_facade* facade, void* pointer,
                                void* stream, void* event) {
  return strata::GuardCall("strata_record_use", [&] {
    strata::Require(facade, "facade");
    strata::Require(event, "event");
    if (pointer == nullptr) return;
    Allocation& allocation = FindPointer(*facade, pointer);
    facade->facade.RecordUse(allocation,
                             StreamOf(*facade, allocation.place(), stream),
                             strata::Event{event});
  });
}

strata_status strata_erase_stream(strata_facade* facade, void* pointer,
                                  void* stream) {
  return strata::GuardCall("strata_erase_stream", [&] {
    strata::Require(facade, "facade");
    if (pointer == nullptr) return;
    Allocation& allocation = FindPointer(*facade, pointer);
    facade->facade.EraseStream(allocation,
                               StreamOf(*facade, allocation.place(), stream));
  });
}

strata_status strata_stream_create(strata_facade* facade, int32_t device,
                                   void** stream) {
  return strata::GuardCall("strata_stream_create", [&] {
    strata::Require(facade, "facade");
    strata::Require(stream, "stream");
    strata::Platform& platform = facade->facade.platform();
    if (device < 0 || device >= platform.device_count()) {
      throw std::invalid_argument("there is no device " +
                                  std::to_string(device));
    }
    Stream made;
    RequireSuccess(
        platform.device(device).StreamCreate(&made, strata::kStreamNonBlocking),
        "StreamCreate");
    try {
      const std::lock_guard<std::mutex> guard(facade->mutex);
      facade->streams.push_back({made});
    } catch (...) {
      platform.device(device).StreamDestroy(made);
      throw;
    }
    *stream = made.handle;
  });
}

strata_status strata_stream_destroy(strata_facade* facade, int32_t device,
                                    void* stream) {
  return strata::GuardCall("strata_stream_destroy", [&] {
    strata::Require(facade, "facade");
    EndingStream ending(*facade, device, stream);
    RequireSuccess(ending.Destroy(), "StreamDestroy");
  });
}

strata_status strata_stream_destroyed(strata_facade* facade, int32_t device,
                                      void* stream) {
  return strata::GuardCall("strata_stream_destroyed", [&] {
    strata::Require(facade, "facade");
    strata::AnnounceEnd(*facade, facade->facade.Wrap(stream, device));
  });
}

strata_status strata_stream_forbid_waits(strata_facade* facade, int32_t device,
                                         void* stream) {
  return strata::GuardCall("strata_stream_forbid_waits", [&] {
    strata::Require(facade, "facade");
    facade->facade.ForbidWaits(facade->facade.Wrap(stream, device));
  });
}
