// The C ABI: facades, memory, statistics, messages.

#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "strata/base/log.h"
#include "strata/bindings/c/c_api_call.h"

using strata::Allocation;
using strata::AllocationPtr;
using strata::AllocatorFacade;
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
    for (const Stream& made : owned->streams) {
      Status status = Status::kMemoryAllocation;
      try {
        status = strata::DestroyStream(*owned, made);
      } catch (const std::bad_alloc&) {
        // The other streams can be destroyed all the same.
      }
      STRATA_LOG_IF(Error, status != Status::kSuccess)
          << "strata_destroy: cannot destroy a stream: " << status;
    }
    if (live != 0) {
      throw CallError(STRATA_LIVE_POINTERS,
                      std::to_string(live) + " pointer(s) had not been freed");
    }
  });
}

namespace {

void* Allocate(strata_facade& facade, strata_place place,
               const Request& request, void* stream) {
  AllocatorFacade& allocator = facade.facade;
  return facade.pointers.Insert(
      stream == nullptr ? allocator.Alloc(PlaceOf(place), request)
                        : allocator.Alloc(PlaceOf(place), request, stream));
}

}  // namespace

[[gnu::aligned(64)]] strata_status strata_alloc(strata_facade* facade,
                                                strata_place place,
                                                size_t bytes, void* stream,
                                                void** pointer) {
  return strata::GuardCall("strata_alloc", [&] {
    strata::Require(facade, "facade");
    strata::Require(pointer, "pointer");
    AllocatorFacade& allocator = facade->facade;
    Allocation* const allocation =
        stream == nullptr ? allocator.AllocPlain(PlaceOf(place), bytes)
                          : allocator.AllocPlain(PlaceOf(place), bytes, stream);
    *pointer = facade->pointers.Insert(AllocationPtr(allocation));
  });
}

strata_status strata_alloc_aligned(strata_facade* facade, strata_place place,
                                   size_t bytes, size_t alignment, void* stream,
                                   void** pointer) {
  return strata::FacadeCall("strata_alloc_aligned", facade, [&] {
    strata::Require(pointer, "pointer");
    *pointer = Allocate(*facade, place, Request{bytes, alignment}, stream);
  });
}

strata_status strata_alloc_special(strata_facade* facade, strata_place place,
                                   size_t bytes, uint32_t use, void* stream,
                                   void** pointer) {
  return strata::FacadeCall("strata_alloc_special", facade, [&] {
    strata::Require(pointer, "pointer");
    if ((use & ~std::uint32_t{STRATA_ONE_HANDLE | STRATA_LEGACY_IPC}) != 0) {
      throw std::invalid_argument("there is no use " + std::to_string(use));
    }
    Request request{bytes};
    if ((use & STRATA_ONE_HANDLE) != 0) request.flags |= strata::kOneHandle;
    if ((use & STRATA_LEGACY_IPC) != 0) request.flags |= strata::kLegacyIpc;
    *pointer = Allocate(*facade, place, request, stream);
  });
}

[[gnu::aligned(64)]] strata_status strata_free(strata_facade* facade,
                                               void* pointer) {
  return strata::GuardCall("strata_free", [&] {
    strata::Require(facade, "facade");
    if (pointer == nullptr) return;
    const AllocationPtr taken = facade->pointers.Take(pointer);
    if (taken == nullptr) ThrowUnknown(pointer);
  });
}

strata_status strata_free_on(strata_facade* facade, void* pointer,
                             void* stream) {
  return strata::FacadeCall("strata_free_on", facade, [&] {
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
  return strata::FacadeCall("strata_release", facade, [&] {
    const std::size_t given = facade->facade.Release(PlaceOf(place));
    if (bytes != nullptr) *bytes = given;
  });
}

strata_status strata_stats_json(strata_facade* facade, char* buffer,
                                size_t capacity, size_t* needed) {
  return strata::FacadeCall("strata_stats_json", facade, [&] {
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

strata_status strata_set_log_callback(strata_log_callback callback,
                                      void* context) {
  static_assert(STRATA_LOG_INFO ==
                static_cast<int>(strata::LogSeverity::kInfo));
  static_assert(STRATA_LOG_FATAL ==
                static_cast<int>(strata::LogSeverity::kFatal));
  return strata::GuardCall("strata_set_log_callback", [&] {
    if (callback == nullptr) return strata::SetLogCallback(nullptr);
    strata::SetLogCallback([=](const strata::LogEntry& entry) {
      callback(context, static_cast<int32_t>(entry.severity), entry.file,
               entry.line, entry.message);
    });
  });
}
