// The C ABI: facades, memory, statistics.

#include <glog/logging.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "strata/facade/c_api_call.h"

using strata::Allocation;
using strata::AllocationPtr;
using strata::CallError;
using strata::FindPointer;
using strata::PlaceOf;
using strata::Request;
using strata::Status;
using strata::Stream;
using strata::StreamOf;
using strata::ThrowUnknown;

const char* strata_version() {
  static const auto* const version =
      new std::string(std::to_string(STRATA_VERSION_MAJOR) + "." +
                      std::to_string(STRATA_VERSION_MINOR) + "." +
                      std::to_string(STRATA_VERSION_PATCH));
  return version->c_str();
}

strata_status strata_create(const char* options, strata_facade** facade) {
  return strata::GuardCall("strata_create", [&] {
    strata::Require(facade, "facade");
    *facade = new strata_facade(
        strata::Options::Parse(options != nullptr ? options : ""));
  });
}

strata_status strata_destroy(strata_facade* facade) {
  return strata::GuardCall("strata_destroy", [&] {
    const std::unique_ptr<strata_facade> owned(facade);
    if (owned == nullptr) return;
    const std::size_t live = owned->pointers.Clear();
    for (const Stream& stream : owned->streams) {
      const Status status = strata::DestroyStream(*owned, stream);
      LOG_IF(ERROR, status != Status::kSuccess)
          << "strata_destroy: cannot destroy a stream: "
          << strata::ToString(status);
    }
    if (live != 0) {
      throw CallError(STRATA_LIVE_POINTERS,
                      std::to_string(live) + " pointer(s) had not been freed");
    }
  });
}

namespace {

// `allocate` gives the AllocationPtr. A function of its own for each caller, so
// that compilers inline what is called once.
template <class Allocate>
[[gnu::always_inline]] inline strata_status AllocateFor(strata_facade* facade,
                                                        void** pointer,
                                                        Allocate&& allocate) {
  return strata::GuardCall("strata_alloc", [&] {
    strata::Require(facade, "facade");
    strata::Require(pointer, "pointer");
    AllocationPtr allocation = allocate();
    void* data = allocation->data();
    if (data != nullptr) facade->pointers.Insert(std::move(allocation));
    *pointer = data;
  });
}

}  // namespace

strata_status strata_alloc(strata_facade* facade, strata_place place,
                           size_t bytes, void* stream, void** pointer) {
  return AllocateFor(facade, pointer, [&] {
    return stream == nullptr
               ? facade->facade.Alloc(PlaceOf(place), bytes)
               : facade->facade.Alloc(PlaceOf(place), bytes, stream);
  });
}

strata_status strata_alloc_aligned(strata_facade* facade, strata_place place,
                                   size_t bytes, size_t alignment, void* stream,
                                   void** pointer) {
  return AllocateFor(facade, pointer, [&] {
    const Request request{bytes, alignment};
    return stream == nullptr
               ? facade->facade.GetAllocator(PlaceOf(place)).Allocate(request)
               : facade->facade.Alloc(PlaceOf(place), request, stream);
  });
}

strata_status strata_free(strata_facade* facade, void* pointer) {
  return strata::GuardCall("strata_free", [&] {
    strata::Require(facade, "facade");
    if (pointer == nullptr) return;
    Allocation* const allocation = facade->pointers.Take(pointer).release();
    if (allocation == nullptr) ThrowUnknown(pointer);
    // Not by the deleter, which has more to ask: this is live, and has memory.
    allocation->owner()->DoFree(allocation);
  });
}

strata_status strata_free_on(strata_facade* facade, void* pointer,
                             void* stream) {
  return strata::GuardCall("strata_free_on", [&] {
    strata::Require(facade, "facade");
    if (pointer == nullptr) return;
    const Stream last =
        StreamOf(*facade, FindPointer(*facade, pointer).place(), stream);
    AllocationPtr allocation = facade->pointers.Take(pointer);
    if (allocation == nullptr) ThrowUnknown(pointer);
    strata::Allocator* owner = allocation->owner();
    owner->Free(std::move(allocation), last);
  });
}

strata_status strata_release(strata_facade* facade, strata_place place,
                             size_t* bytes) {
  return strata::GuardCall("strata_release", [&] {
    strata::Require(facade, "facade");
    const std::size_t given = facade->facade.Release(PlaceOf(place));
    if (bytes != nullptr) *bytes = given;
  });
}

strata_status strata_stats_json(strata_facade* facade, char* buffer,
                                size_t capacity, size_t* needed) {
  return strata::GuardCall("strata_stats_json", [&] {
    strata::Require(facade, "facade");
    if (capacity != 0) strata::Require(buffer, "buffer");
    const std::string json = facade->facade.StatsJson();
    const std::size_t size = json.size() + 1;
    if (needed != nullptr) *needed = size;
    if (size > capacity) {
      throw CallError(STRATA_SHORT_BUFFER,
                      std::to_string(size) + " bytes needed, " +
                          std::to_string(capacity) + " given");
    }
    std::memcpy(buffer, json.c_str(), size);
  });
}
