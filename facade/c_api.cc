// The C ABI: facades, memory, statistics.

#include <glog/logging.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "strata/facade/c_api_call.h"
#include "strata/facade/front.h"
#include "strata/facade/front_route.h"
#include "strata/facade/front_table.h"

using strata::Allocation;
using strata::AllocationPtr;
using strata::AllocatorFacade;
using strata::CallError;
using strata::ChainLock;
using strata::FindPointer;
using strata::Front;
using strata::FrontRoute;
using strata::PlaceOf;
using strata::PointerGroup;
using strata::Request;
using strata::Status;
using strata::Stream;
using strata::StreamOf;
using strata::t_default_route;
using strata::t_free_route;
using strata::t_handle_route;
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

// strata_alloc and strata_free are what a hit needs and nothing else; the rest
// is in functions that they call last.

// Has the facade own the pointer; returns that.
void* Keep(strata_facade& facade, AllocationPtr allocation) {
  void* const data = allocation->data();
  if (data != nullptr) facade.pointers.Insert(std::move(allocation));
  return data;
}

// Where the thread does not know the way to the front yet, or an argument is
// wrong.
[[gnu::noinline]] strata_status AllocFirst(strata_facade* facade,
                                           strata_place place, size_t bytes,
                                           void* stream,
                                           void** pointer) noexcept {
  return strata::GuardCall("strata_alloc", [&] {
    strata::Require(facade, "facade");
    strata::Require(pointer, "pointer");
    AllocatorFacade& allocator = facade->facade;
    Allocation* const allocation =
        stream == nullptr ? allocator.AllocPlain(PlaceOf(place), bytes)
                          : allocator.AllocPlain(PlaceOf(place), bytes, stream);
    *pointer = Keep(*facade, AllocationPtr(allocation));
  });
}

[[gnu::noinline]] strata_status FinishAlloc(strata_facade& facade, Front& front,
                                            Front::Started start, size_t bytes,
                                            void** pointer) noexcept {
  return strata::GuardCall("strata_alloc", [&] {
    const auto [unknown, data] = front.FinishKnown(start, bytes);
    *pointer = unknown == nullptr ? data : Keep(facade, AllocationPtr(unknown));
  });
}

[[gnu::noinline]] strata_status FinishFree(strata_facade& facade,
                                           PointerGroup& group, void* pointer,
                                           Front::Progress progress) noexcept {
  return strata::GuardCall("strata_free", [&] {
    if (Front::FinishFree(group, pointer, progress) || pointer == nullptr) {
      return;
    }
    // Its region has changed streams.
    t_free_route = {};
    const AllocationPtr taken = facade.pointers.Take(pointer);
    if (taken == nullptr) ThrowUnknown(pointer);
  });
}

// Where the thread does not know the way to the pointer yet, or an argument is
// wrong.
[[gnu::noinline]] strata_status FreeFirst(strata_facade* facade,
                                          void* pointer) noexcept {
  if (facade != nullptr && pointer == nullptr) return STRATA_OK;
  PointerGroup* const group =
      facade != nullptr ? facade->pointers.GroupOf(pointer) : nullptr;
  if (group == nullptr) {
    return strata::GuardCall("strata_free", [&] {
      strata::Require(facade, "facade");
      ThrowUnknown(pointer);
    });
  }
  ChainLock& lock = group->guard();
  t_free_route = {group, &lock, facade->facade.fronts().version(),
                  facade->pointers.regions().WordOf(pointer)};
  const Front::Progress progress = Front::StartFree(*group, lock, pointer);
  return progress == Front::Progress::kDone
             ? STRATA_OK
             : FinishFree(*facade, *group, pointer, progress);
}

}  // namespace

strata_status strata_alloc(strata_facade* facade, strata_place place,
                           size_t bytes, void* stream, void** pointer) {
  if (facade == nullptr || pointer == nullptr || !strata::IsPlace(place))
      [[unlikely]] {
    return AllocFirst(facade, place, bytes, stream, pointer);
  }
  const std::uint64_t version = facade->facade.fronts().version();
  const FrontRoute* route = nullptr;
  if (stream == nullptr) {
    if (!t_default_route.LeadsTo(PlaceOf(place), 0, version)) [[unlikely]] {
      return AllocFirst(facade, place, bytes, stream, pointer);
    }
    route = &t_default_route;
  } else {
    const auto handle = reinterpret_cast<std::uintptr_t>(stream);
    if (!t_handle_route.LeadsTo(PlaceOf(place), handle, version)) [[unlikely]] {
      return AllocFirst(facade, place, bytes, stream, pointer);
    }
    route = &t_handle_route;
  }
  const Front::Started start =
      route->front->StartKnown(*route->hit, bytes, pointer);
  if (start.progress != Front::Progress::kDone) {
    return FinishAlloc(*facade, *route->front, start, bytes, pointer);
  }
  return STRATA_OK;
}

strata_status strata_alloc_aligned(strata_facade* facade, strata_place place,
                                   size_t bytes, size_t alignment, void* stream,
                                   void** pointer) {
  return strata::GuardCall("strata_alloc", [&] {
    strata::Require(facade, "facade");
    strata::Require(pointer, "pointer");
    const Request request{bytes, alignment};
    *pointer =
        Keep(*facade,
             stream == nullptr
                 ? facade->facade.GetAllocator(PlaceOf(place)).Allocate(request)
                 : facade->facade.Alloc(PlaceOf(place), request, stream));
  });
}

strata_status strata_free(strata_facade* facade, void* pointer) {
  if (facade == nullptr ||
      !t_free_route.LeadsTo(facade->pointers.regions().WordOf(pointer),
                            facade->facade.fronts().version())) [[unlikely]] {
    return FreeFirst(facade, pointer);
  }
  PointerGroup& group = *t_free_route.group;
  const Front::Progress progress =
      Front::StartFree(group, *t_free_route.lock, pointer);
  if (progress != Front::Progress::kDone) {
    return FinishFree(*facade, group, pointer, progress);
  }
  return STRATA_OK;
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
