#ifndef STRATA_PLATFORM_CALLS_DEVICE_CALL_H_
#define STRATA_PLATFORM_CALLS_DEVICE_CALL_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "strata/base/require_cxx20.h"

namespace strata {

// The entry points of Device, one enumerator each (device_calls.def), then the
// other events that observers receive (device_events.def).
enum class DeviceCall : std::uint8_t {
#define STRATA_DEVICE_CALL(method, name, parameters, arguments, operands) \
  k##method,
#include "strata/platform/calls/device_calls.def"
#undef STRATA_DEVICE_CALL
#define STRATA_DEVICE_EVENT(method, name) k##method,
#include "strata/platform/calls/device_events.def"
#undef STRATA_DEVICE_EVENT
};

inline constexpr std::size_t kDeviceCallCount = 0
#define STRATA_DEVICE_CALL(method, name, parameters, arguments, operands) +1
#include "strata/platform/calls/device_calls.def"
#undef STRATA_DEVICE_CALL
    ;

// Entry points come first: call < kDeviceCallCount.
inline constexpr bool IsEntryPoint(DeviceCall call) {
  return static_cast<std::size_t>(call) < kDeviceCallCount;
}

// True if `rows`, each with a `call`, are those of the entry points, in the
// order of device_calls.def.
template <class Row, std::size_t kCount>
constexpr bool AreEntryPoints(const Row (&rows)[kCount]) {
  for (std::size_t i = 0; i < kCount; ++i) {
    if (static_cast<std::size_t>(rows[i].call) != i) return false;
  }
  return kCount == kDeviceCallCount;
}

// "mem_alloc" for DeviceCall::kMemAlloc, "use" for kUse. The result is static.
const char* DeviceCallName(DeviceCall call);

// Parses the name of an entry point. Returns false and leaves `call` unchanged
// if there is none of this name.
bool ParseDeviceCall(std::string_view name, DeviceCall* call);

// Like ParseDeviceCall, for entry points and events.
bool ParseObservedCall(std::string_view name, DeviceCall* call);

}  // namespace strata

#endif  // STRATA_PLATFORM_CALLS_DEVICE_CALL_H_
