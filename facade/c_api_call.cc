#include "strata/facade/c_api_call.h"

#include <cstdint>
#include <limits>
#include <sstream>

#include "strata/platform/device.h"

namespace strata {
namespace {

std::string& LastError() {
  thread_local std::string t_text;
  return t_text;
}

}  // namespace

strata_status FailCall(strata_status code, const char* function,
                       const char* what) noexcept {
  try {
    LastError() = std::string(function) + ": " + what;
  } catch (const std::bad_alloc&) {
    LastError().clear();
  }
  return code;
}

void Require(const void* argument, const char* name) {
  if (argument == nullptr) {
    throw std::invalid_argument(std::string(name) + " is NULL");
  }
}

Place PlaceOf(strata_place place) {
  if (place.kind < STRATA_HOST || place.kind > STRATA_MANAGED ||
      place.index < 0 ||
      place.index > std::numeric_limits<std::uint16_t>::max()) {
    throw std::invalid_argument("there is no place of kind " +
                                std::to_string(place.kind) + " and index " +
                                std::to_string(place.index));
  }
  return Place{static_cast<PlaceKind>(place.kind),
               static_cast<std::uint16_t>(place.index)};
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

Stream StreamOf(strata_facade& facade, Place place, void* handle) {
  const int own = place.kind == PlaceKind::kHost ? 0 : place.index;
  if (handle == nullptr) {
    return facade.facade.GetDefaultStream(DevicePlace(own));
  }
  Platform& platform = facade.facade.platform();
  Stream stream;
  if (platform.device(own).WrapStream(handle, &stream) == Status::kSuccess) {
    return stream;
  }
  for (int i = 0; i < platform.device_count(); ++i) {
    if (platform.device(i).WrapStream(handle, &stream) == Status::kSuccess) {
      return stream;
    }
  }
  return facade.facade.Wrap(handle, own);  // says what is wrong
}

Status DestroyStream(strata_facade& facade, Stream stream) {
  facade.facade.StreamDestroyed(stream);
  return facade.facade.platform().device(stream.device).StreamDestroy(stream);
}

}  // namespace strata

const char* strata_last_error() { return strata::LastError().c_str(); }
