#include "strata/platform/device_call.h"

namespace strata {
namespace {

constexpr const char* kNames[] = {
#define STRATA_DEVICE_CALL(method, name) #name,
#include "strata/platform/device_calls.def"
#undef STRATA_DEVICE_CALL
};

}  // namespace

const char* DeviceCallName(DeviceCall call) {
  return kNames[static_cast<std::size_t>(call)];
}

bool ParseDeviceCall(std::string_view name, DeviceCall* call) {
  for (std::size_t i = 0; i < kDeviceCallCount; ++i) {
    if (name != kNames[i]) continue;
    *call = static_cast<DeviceCall>(i);
    return true;
  }
  return false;
}

}  // namespace strata
