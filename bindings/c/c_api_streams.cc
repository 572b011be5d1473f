// The C ABI: streams, and marks on pointers.

#include <algorithm>
#include <cstdint>
#include <list>
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

}  // namespace

strata_status strata_record_stream(strata_facade* facade, void* pointer,
                                   void* stream) {
  return strata::FacadeCall("strata_record_stream", facade, [&] {
    if (pointer == nullptr) return;
    Allocation& allocation = FindPointer(*facade, pointer);
    facade->facade.RecordStream(allocation,
                                StreamOf(*facade, allocation.place(), stream));
  });
}

strata_status strata_record_use(strata_facade* facade, void* pointer,
                                void* stream, void* event) {
  return strata::FacadeCall("strata_record_use", facade, [&] {
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
  return strata::FacadeCall("strata_erase_stream", facade, [&] {
    if (pointer == nullptr) return;
    Allocation& allocation = FindPointer(*facade, pointer);
    facade->facade.EraseStream(allocation,
                               StreamOf(*facade, allocation.place(), stream));
  });
}

strata_status strata_stream_create(strata_facade* facade, int32_t device,
                                   void** stream) {
  return strata::FacadeCall("strata_stream_create", facade, [&] {
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
      facade->streams.push_back(made);
    } catch (...) {
      platform.device(device).StreamDestroy(made);
      throw;
    }
    *stream = made.handle;
  });
}

strata_status strata_stream_destroy(strata_facade* facade, int32_t device,
                                    void* stream) {
  return strata::FacadeCall("strata_stream_destroy", facade, [&] {
    // Out of the list, so that no other call destroys it.
    std::list<Stream> ending;
    const auto move = [&](std::list<Stream>& from, std::list<Stream>& to) {
      const std::lock_guard<std::mutex> guard(facade->mutex);
      const auto found =
          std::find_if(from.begin(), from.end(), [&](const Stream& made) {
            return made.device == device && made.handle == stream;
          });
      if (found != from.end()) to.splice(to.end(), from, found);
    };
    move(facade->streams, ending);
    if (ending.empty()) {
      throw std::invalid_argument("not a stream of strata_stream_create");
    }
    try {
      RequireSuccess(strata::DestroyStream(*facade, ending.front()),
                     "StreamDestroy");
    } catch (...) {
      move(ending, facade->streams);
      throw;
    }
  });
}

strata_status strata_stream_destroyed(strata_facade* facade, int32_t device,
                                      void* stream) {
  return strata::FacadeCall("strata_stream_destroyed", facade, [&] {
    strata::AnnounceEnd(*facade, facade->facade.Wrap(stream, device));
  });
}

strata_status strata_stream_forbid_waits(strata_facade* facade, int32_t device,
                                         void* stream) {
  return strata::FacadeCall("strata_stream_forbid_waits", facade, [&] {
    facade->facade.ForbidWaits(facade->facade.Wrap(stream, device));
  });
}
