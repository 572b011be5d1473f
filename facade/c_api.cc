// The C ABI: facades, memory, statistics.

#include <glog/logging.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "strata/facade/c_api_call.h"
#include "strata/facade/front.h"
#include "strata/facade/front_route.h"
#include "strata/facade/front_table.h"

using strata::Allocation;
using strata::AllocationPtr;
using strata::AllocatorFacade;
using strata::Block;
using strata::CallError;
using strata::ChainLock;
using strata::FindPointer;
using strata::Front;
using strata::FrontRoute;
using strata::HitState;
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
    for (const auto& made : owned->streams) {
      Status status = Status::kMemoryAllocation;
      try {
        status = strata::DestroyStream(*owned, made.stream);
      } catch (const std::bad_alloc&) {
        // The other streams can be destroyed all the same.
      }
      LOG_IF(ERROR, status != Status::kSuccess)
          << "strata_destroy: cannot destroy a stream: " << status;
    }
    if (live != 0) {
      throw CallError(STRATA_LIVE_POINTERS,
                      std::to_string(live) + " pointer(s) had not been freed");
    }
  });
}

namespace {

// strata_alloc and strata_free contain only the code of a hit of a slot; all
// other cases are in tail-called functions. The functions of a hit are aligned
// to a cache line: at other addresses a pair took up to a tenth longer.

// Inserts the allocation into the facade's pointers; returns its address.
void* Keep(strata_facade& facade, AllocationPtr allocation) {
  void* const data = allocation->data();
  if (data != nullptr) facade.pointers.Insert(std::move(allocation));
  return data;
}

// The thread's route does not lead to the front, or an argument is wrong.
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

// The lock was not available at once.
[[gnu::noinline]] strata_status AllocContended(strata_facade& facade,
                                               Front& front, HitState& /*hit*/,
                                               size_t bytes,
                                               void** pointer) noexcept {
  return strata::GuardCall("strata_alloc", [&] {
    const auto [unknown, data] = front.AllocKnown(bytes);
    *pointer = unknown == nullptr ? data : Keep(facade, AllocationPtr(unknown));
  });
}

// Not a plain hit, or no search found a block at once.
[[gnu::noinline]] strata_status AllocSlowly(strata_facade& facade, Front& front,
                                            size_t bytes,
                                            void** pointer) noexcept {
  return strata::GuardCall("strata_alloc", [&] {
    *pointer = Keep(facade, AllocationPtr(front.AllocSlowly(bytes)));
  });
}

// The group does not own the region of `allocation`, or needs memory.
[[gnu::noinline]] strata_status KeepSlowly(strata_facade& facade,
                                           Allocation* allocation,
                                           void** pointer) noexcept {
  return strata::GuardCall("strata_alloc", [&] {
    *pointer = Keep(facade, AllocationPtr(allocation));
  });
}

// The rest under the lock, which `Hold` holds.

template <class Hold>
[[gnu::noinline]] strata_status AllocPastSlot(strata_facade& facade,
                                              Front& front, HitState& hit,
                                              Block* block,
                                              void** pointer) noexcept {
  if (front.MakeKnown<Hold>(hit, block, pointer)) return STRATA_OK;
  return KeepSlowly(facade, block->allocation(), pointer);
}

template <class Hold>
[[gnu::noinline]] strata_status AllocPastCache(strata_facade& facade,
                                               Front& front, HitState& hit,
                                               size_t bytes,
                                               void** pointer) noexcept {
  Block* const block = front.TakePastCache<Hold>(hit, bytes);
  if (block == nullptr) return AllocSlowly(facade, front, bytes, pointer);
  if (front.MakeKnown<Hold>(hit, block, pointer)) return STRATA_OK;
  return KeepSlowly(facade, block->allocation(), pointer);
}

using AllocRest = strata_status(strata_facade&, Front&, HitState&, size_t,
                                void**) noexcept;

// Acquires the lock with `Hold` if it is available at once; else calls
// `Otherwise`.
template <class Hold, AllocRest Otherwise>
[[gnu::always_inline]] inline strata_status AllocWith(strata_facade& facade,
                                                      Front& front,
                                                      HitState& hit,
                                                      size_t bytes,
                                                      void** pointer) noexcept {
  const Front::Started start = front.StartKnown<Hold>(hit, bytes, pointer);
  switch (start.progress) {
    case Front::Progress::kDone:
      return STRATA_OK;
    case Front::Progress::kPastCache:
      return AllocPastCache<Hold>(facade, front, hit, bytes, pointer);
    case Front::Progress::kNoSlot:
      return AllocPastSlot<Hold>(facade, front, hit, start.block, pointer);
    case Front::Progress::kSlowly:
      return AllocSlowly(facade, front, bytes, pointer);
    default:
      return Otherwise(facade, front, hit, bytes, pointer);
  }
}

// The lock may have an owner thread, or is held.
[[gnu::noinline, gnu::aligned(64)]] strata_status AllocInTurn(
    strata_facade& facade, Front& front, HitState& hit, size_t bytes,
    void** pointer) noexcept {
  return AllocWith<ChainLock::AsOwner, AllocContended>(facade, front, hit,
                                                       bytes, pointer);
}

// The group does not know the pointer: it belongs to another stream, or its
// region has changed streams.
[[gnu::noinline]] strata_status FreeElsewhere(strata_facade& facade,
                                              void* pointer) noexcept {
  if (pointer == nullptr) return STRATA_OK;
  t_free_route.Leave();
  return strata::GuardCall("strata_free", [&] {
    const AllocationPtr taken = facade.pointers.Take(pointer);
    if (taken == nullptr) ThrowUnknown(pointer);
  });
}

// The lock was not available at once. It may be the lock of another stream, for
// which no free should wait.
[[gnu::noinline]] strata_status FreeContended(ChainLock& lock,
                                              strata_facade& facade,
                                              PointerGroup& known,
                                              void* pointer) noexcept {
  // The steady route is out of date.
  if (!known.IsGuardedBy(lock)) t_free_route.Leave();
  PointerGroup* const group = facade.pointers.GroupOf(pointer);
  if (group != nullptr && Front::FreeKnown(*group, pointer)) return STRATA_OK;
  return FreeElsewhere(facade, pointer);
}

template <class Hold>
[[gnu::noinline]] strata_status FreeBySearch(strata_facade& facade,
                                             PointerGroup& group,
                                             ChainLock& lock,
                                             void* pointer) noexcept {
  if (Front::FreeBySearch<Hold>(group, lock, pointer)) return STRATA_OK;
  return FreeElsewhere(facade, pointer);
}

template <class Hold>
[[gnu::noinline]] strata_status FreePastSlot(strata_facade& facade,
                                             PointerGroup& group,
                                             ChainLock& lock,
                                             void* pointer) noexcept {
  if (Front::FreePastSlot<Hold>(group, lock, pointer)) return STRATA_OK;
  return FreeBySearch<Hold>(facade, group, lock, pointer);
}

using FreeRest = strata_status(ChainLock&, strata_facade&, PointerGroup&,
                               void*) noexcept;

// Frees under the lock that was the guard of the group, if `Hold` can acquire
// it at once; else calls `Otherwise`.
template <class Hold, FreeRest Otherwise>
[[gnu::always_inline]] inline strata_status FreeWith(ChainLock& lock,
                                                     strata_facade& facade,
                                                     PointerGroup& group,
                                                     void* pointer) noexcept {
  switch (Front::StartFree<Hold>(group, lock, pointer)) {
    case Front::Progress::kDone:
      return STRATA_OK;
    case Front::Progress::kNoSlot:
      return FreePastSlot<Hold>(facade, group, lock, pointer);
    default:
      return Otherwise(lock, facade, group, pointer);
  }
}

// The lock may have an owner thread, or is held.
[[gnu::noinline, gnu::aligned(64)]] strata_status FreeInTurn(
    ChainLock& lock, strata_facade& facade, PointerGroup& group,
    void* pointer) noexcept {
  return FreeWith<ChainLock::AsOwner, FreeContended>(lock, facade, group,
                                                     pointer);
}

// The thread has no route to the pointer, or an argument is wrong.
[[gnu::noinline]] strata_status FreeFirst(strata_facade* facade,
                                          void* pointer) noexcept {
  if (facade == nullptr) {
    return strata::GuardCall("strata_free",
                             [&] { strata::Require(facade, "facade"); });
  }
  PointerGroup* const group = facade->pointers.GroupOf(pointer);
  if (group == nullptr) return FreeElsewhere(*facade, pointer);
  ChainLock& lock = group->guard();
  t_free_route.Note(*group, lock, facade->facade.fronts().version());
  return FreeWith<ChainLock::ByWord, FreeInTurn>(lock, *facade, *group,
                                                 pointer);
}

}  // namespace

[[gnu::aligned(64)]] strata_status strata_alloc(strata_facade* facade,
                                                strata_place place,
                                                size_t bytes, void* stream,
                                                void** pointer) {
  if (facade == nullptr || pointer == nullptr) [[unlikely]] {
    return AllocFirst(facade, place, bytes, stream, pointer);
  }
  const std::uint64_t version = facade->facade.fronts().version();
  const std::uint64_t wide_place =
      FrontRoute::WidePlace(static_cast<std::uint32_t>(place.kind),
                            static_cast<std::uint32_t>(place.index));
  const FrontRoute* route = nullptr;
  if (stream == nullptr) {
    if (!t_default_route.LeadsTo(wide_place, 0, version)) [[unlikely]] {
      return AllocFirst(facade, place, bytes, stream, pointer);
    }
    route = &t_default_route;
  } else {
    const auto handle = reinterpret_cast<std::uintptr_t>(stream);
    if (!t_handle_route.LeadsTo(wide_place, handle, version)) [[unlikely]] {
      return AllocFirst(facade, place, bytes, stream, pointer);
    }
    route = &t_handle_route;
  }
  return AllocWith<ChainLock::ByWord, AllocInTurn>(*facade, *route->front,
                                                   *route->hit, bytes, pointer);
}

strata_status strata_alloc_aligned(strata_facade* facade, strata_place place,
                                   size_t bytes, size_t alignment, void* stream,
                                   void** pointer) {
  return strata::GuardCall("strata_alloc_aligned", [&] {
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

strata_status strata_alloc_special(strata_facade* facade, strata_place place,
                                   size_t bytes, uint32_t use, void* stream,
                                   void** pointer) {
  return strata::GuardCall("strata_alloc_special", [&] {
    strata::Require(facade, "facade");
    strata::Require(pointer, "pointer");
    if ((use & ~std::uint32_t{STRATA_ONE_HANDLE | STRATA_LEGACY_IPC}) != 0) {
      throw std::invalid_argument("there is no use " + std::to_string(use));
    }
    Request request{bytes};
    if ((use & STRATA_ONE_HANDLE) != 0) request.flags |= strata::kOneHandle;
    if ((use & STRATA_LEGACY_IPC) != 0) request.flags |= strata::kLegacyIpc;
    *pointer =
        Keep(*facade,
             stream == nullptr
                 ? facade->facade.GetAllocator(PlaceOf(place)).Allocate(request)
                 : facade->facade.Alloc(PlaceOf(place), request, stream));
  });
}

[[gnu::aligned(64)]] strata_status strata_free(strata_facade* facade,
                                               void* pointer) {
  if (facade == nullptr ||
      !t_free_route.IsSteady(facade->facade.fronts().version())) [[unlikely]] {
    return FreeFirst(facade, pointer);
  }
  return FreeWith<ChainLock::ByWord, FreeInTurn>(*t_free_route.lock, *facade,
                                                 *t_free_route.group, pointer);
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
