#ifndef STRATA_PLATFORM_DEVICE_CALL_H_
#define STRATA_PLATFORM_DEVICE_CALL_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace strata {

// The entry points of Device, one enumerator each (device_calls.def).
enum class DeviceCall : std::uint8_t {
#define STRATA_DEVICE_CALL(method, name) k##method,
#include "strata/platform/device_calls.def"
#undef STRATA_DEVICE_CALL
};

inline constexpr std::size_t kDeviceCallCount = 0
#define STRATA_DEVICE_CALL(method, name) +1
#include "strata/platform/device_calls.def"
#undef STRATA_DEVICE_CALL
    ;

// "mem_alloc" for DeviceCall::kMemAlloc. The result is static.
const char* DeviceCallName(DeviceCall call);

// Returns false and leaves `call` alone if no entry point has this name.
bool ParseDeviceCall(std::string_view name, DeviceCall* call);

}  // namespace strata

#endif  // STRATA_PLATFORM_DEVICE_CALL_H_
