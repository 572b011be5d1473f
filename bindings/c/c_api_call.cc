#include "strata/bindings/c/c_api_call.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <sstream>
#include <string>

#include "strata/platform/device.h"

namespace strata {
namespace {

// The text of the last error of a thread. Without destructor, so that a call at
// the end of a thread may fail, too. The longest text names all options.
thread_local constinit std::array<char, 4096> t_error{};

}  // namespace

strata_status FailCall(strata_status code, const char* function,
                       const char* what) noexcept {
  std::snprintf(t_error.data(), t_error.size(), "%s: %s", function, what);
  return code;
}

strata_status FailWithCurrent(const char* function) noexcept {
  try {
    throw;
  } catch (const CallError& error) {
    return FailCall(error.code(), function, error.what());
  } catch (const std::logic_error& error) {
    return FailCall(STRATA_INVALID_ARGUMENT, function, error.what());
  } catch (const std::bad_alloc& error) {
    return FailCall(STRATA_OUT_OF_MEMORY, function, error.what());
  } catch (const std::runtime_error& error) {
    return FailCall(STRATA_DEVICE_ERROR, function, error.what());
  } catch (const std::exception& error) {
    return FailCall(STRATA_INTERNAL, function, error.what());
  } catch (...) {
    return FailCall(STRATA_INTERNAL, function, "unknown exception");
  }
}

void ThrowNull(const char* name) {
  throw std::invalid_argument(std::string(name) + " is NULL");
}

void ThrowNoPlace(strata_place place) {
  throw std::invalid_argument("there is no place of kind " +
                              std::to_string(place.kind) + " and index " +
                              std::to_string(place.index));
}

void ThrowUnknown(const void* pointer) {
  std::ostringstream text;
  text << pointer
       << " is not allocated: freed already, or not from this facade";
  throw CallError(STRATA_UNKNOWN_POINTER, text.str());
}

Allocation& FindPointer(const strata_facade& facade, const void* pointer) {
  Allocation* allocation = facade.pointers.Find(pointer);
  if (allocation == nullptr) ThrowUnknown(pointer);
  return *allocation;
}

namespace {

// The largest fixed name of a default stream (cuda_semantics.md S2).
constexpr std::uintptr_t kLastFixedHandle = 2;

// Looks up the handle on the device `own`, then on the other devices.
Stream LookUp(AllocatorFacade& facade, int own, void* handle) {
  const int count = facade.platform().device_count();
  for (int i = 0; i < count; ++i) {
    try {
      return facade.Wrap(handle, (own + i) % count);
    } catch (const std::invalid_argument&) {
      // Not a stream of this device.
    }
  }
  return facade.Wrap(handle, own);  // throws the error of device `own`
}

}  // namespace

Stream StreamOf(strata_facade& facade, Place place, void* handle) {
  const int own = place.kind == PlaceKind::kHost ? 0 : place.index;
  if (handle == nullptr) {
    return facade.facade.GetDefaultStream(DevicePlace(own));
  }
  // A default stream: it belongs to the device and possibly to the thread.
  if (reinterpret_cast<std::uintptr_t>(handle) <= kLastFixedHandle) {
    return facade.facade.Wrap(handle, own);
  }
  const Stream known = facade.known_streams.Find(handle);
  if (known.uid != 0) return known;
  const Stream stream = LookUp(facade.facade, own, handle);
  facade.known_streams.Add(stream);
  return stream;
}

void AnnounceEnd(strata_facade& facade, Stream stream) {
  facade.facade.StreamDestroyed(stream);
  facade.known_streams.Remove(stream.handle);
}

Status DestroyStream(strata_facade& facade, Stream stream) {
  AnnounceEnd(facade, stream);
  return facade.facade.platform().device(stream.device).StreamDestroy(stream);
}

}  // namespace strata

const char* strata_last_error() { return strata::t_error.data(); }
