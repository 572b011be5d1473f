#include "strata/platform/calls/device_call.h"

#include <iterator>

namespace strata {
namespace {

constexpr const char* kNames[] = {
#define STRATA_DEVICE_CALL(method, name, parameters, arguments, operands) #name,
#include "strata/platform/calls/device_calls.def"
#undef STRATA_DEVICE_CALL
#define STRATA_DEVICE_EVENT(method, name) #name,
#include "strata/platform/calls/device_events.def"
#undef STRATA_DEVICE_EVENT
};

// Looks among the first `count` names.
bool Parse(std::string_view name, std::size_t count, DeviceCall* call) {
  for (std::size_t i = 0; i < count; ++i) {
    if (name != kNames[i]) continue;
    *call = static_cast<DeviceCall>(i);
    return true;
  }
  return false;
}

}  // namespace

const char* DeviceCallName(DeviceCall call) {
  return kNames[static_cast<std::size_t>(call)];
}

bool ParseDeviceCall(std::string_view name, DeviceCall* call) {
  return Parse(name, kDeviceCallCount, call);
}

bool ParseObservedCall(std::string_view name, DeviceCall* call) {
  return Parse(name, std::size(kNames), call);
}

}  // namespace strata
