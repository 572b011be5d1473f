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

// strata_alloc and strata_free are what a pointer with a slot needs, and
// nothing else: two registers saved, and one call, of what the facade does.
// What else there is follows in functions that are called last, each with the
// next likely case.

[[gnu::noinline]] strata_status KeepSlowly(strata_facade& facade,
                                           Allocation* allocation,
                                           void** pointer) noexcept {
  return strata::GuardCall("strata_alloc", [&] {
    AllocationPtr held(allocation);
    void* const data = allocation->data();
    if (data != nullptr) facade.pointers.Insert(std::move(held));
    *pointer = data;
  });
}

[[gnu::noinline]] strata_status KeepInShard(strata_facade& facade, void* data,
                                            Allocation* allocation,
                                            void** pointer) noexcept {
  if (!facade.pointers.InsertIntoShard(data, allocation)) [[unlikely]] {
    return KeepSlowly(facade, allocation, pointer);
  }
  *pointer = data;
  return STRATA_OK;
}

[[gnu::always_inline]] inline strata_status Keep(strata_facade& facade,
                                                 Allocation* allocation,
                                                 void** pointer) noexcept {
  void* const data = allocation->data();
  if (data == nullptr) [[unlikely]] {
    return KeepSlowly(facade, allocation, pointer);
  }
  if (!facade.pointers.InsertIntoSlot(data, allocation)) [[unlikely]] {
    return KeepInShard(facade, data, allocation, pointer);
  }
  *pointer = data;
  return STRATA_OK;
}

[[gnu::noinline]] strata_status FailAlloc(strata_facade* facade,
                                          strata_place place,
                                          void** pointer) noexcept {
  return strata::GuardCall("strata_alloc", [&] {
    strata::Require(facade, "facade");
    strata::Require(pointer, "pointer");
    PlaceOf(place);
  });
}

[[gnu::noinline]] strata_status FreeSlowly(strata_facade* facade,
                                           void* pointer) noexcept {
  return strata::GuardCall("strata_free", [&] {
    strata::Require(facade, "facade");
    if (pointer == nullptr) return;
    const AllocationPtr taken = facade->pointers.Take(pointer);
    if (taken == nullptr) ThrowUnknown(pointer);
  });
}

// Not by the deleter, which has more to ask: this is live, and has memory.
inline strata_status Free(Allocation* allocation) noexcept {
  allocation->owner()->DoFree(allocation);
  return STRATA_OK;
}

[[gnu::noinline]] strata_status FreeFromShard(strata_facade& facade,
                                              void* pointer) noexcept {
  Allocation* const taken = facade.pointers.TakeFromShard(pointer);
  if (taken == nullptr) [[unlikely]] {
    return FreeSlowly(&facade, pointer);
  }
  return Free(taken);
}

}  // namespace

strata_status strata_alloc(strata_facade* facade, strata_place place,
                           size_t bytes, void* stream, void** pointer) {
  if (facade == nullptr || pointer == nullptr || !strata::IsPlace(place))
      [[unlikely]] {
    return FailAlloc(facade, place, pointer);
  }
  Allocation* allocation = nullptr;
  try {
    allocation = stream == nullptr
                     ? facade->facade.AllocPlain(PlaceOf(place), bytes)
                     : facade->facade.AllocPlain(PlaceOf(place), bytes, stream);
  } catch (...) {
    return strata::FailWithCurrent("strata_alloc");
  }
  return Keep(*facade, allocation, pointer);
}

strata_status strata_alloc_aligned(strata_facade* facade, strata_place place,
                                   size_t bytes, size_t alignment, void* stream,
                                   void** pointer) {
  return strata::GuardCall("strata_alloc", [&] {
    strata::Require(facade, "facade");
    strata::Require(pointer, "pointer");
    const Request request{bytes, alignment};
    AllocationPtr allocation =
        stream == nullptr
            ? facade->facade.GetAllocator(PlaceOf(place)).Allocate(request)
            : facade->facade.Alloc(PlaceOf(place), request, stream);
    void* const data = allocation->data();
    if (data != nullptr) facade->pointers.Insert(std::move(allocation));
    *pointer = data;
  });
}

strata_status strata_free(strata_facade* facade, void* pointer) {
  if (facade == nullptr) [[unlikely]] {
    return FreeSlowly(facade, pointer);
  }
  Allocation* const taken = facade->pointers.TakeFromSlot(pointer);
  if (taken == nullptr) [[unlikely]] {
    return FreeFromShard(*facade, pointer);
  }
  return Free(taken);
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
