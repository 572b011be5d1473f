#ifndef STRATA_PLATFORM_DEVICE_CALL_H_
#define STRATA_PLATFORM_DEVICE_CALL_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "strata/platform/require_cxx20.h"

namespace strata {

// The entry points of Device, one enumerator each (device_calls.def), and after
// them what else an observer is told (device_events.def).
enum class DeviceCall : std::uint8_t {
#define STRATA_DEVICE_CALL(method, name) k##method,
#include "strata/platform/device_calls.def"
#undef STRATA_DEVICE_CALL
#define STRATA_DEVICE_EVENT(method, name) k##method,
#include "strata/platform/device_events.def"
#undef STRATA_DEVICE_EVENT
};

inline constexpr std::size_t kDeviceCallCount = 0
#define STRATA_DEVICE_CALL(method, name) +1
#include "strata/platform/device_calls.def"
#undef STRATA_DEVICE_CALL
    ;

// Entry points come first: call < kDeviceCallCount.
inline constexpr bool IsEntryPoint(DeviceCall call) {
  return static_cast<std::size_t>(call) < kDeviceCallCount;
}

// "mem_alloc" for DeviceCall::kMemAlloc, "use" for kUse. The result is static.
const char* DeviceCallName(DeviceCall call);

// Returns false and leaves `call` alone if no entry point has this name.
bool ParseDeviceCall(std::string_view name, DeviceCall* call);

// The same for entry points and events.
bool ParseObservedCall(std::string_view name, DeviceCall* call);

}  // namespace strata

#endif  // STRATA_PLATFORM_DEVICE_CALL_H_
