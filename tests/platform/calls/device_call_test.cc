#include "strata/platform/calls/device_call.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <type_traits>

#include "strata/tests/testing/devices/refusing_device.h"

namespace strata {
namespace {

template <class... Parameters>
Status CallWithNothing(Device& device,
                       Status (Device::*method)(Parameters...)) {
  return (device.*method)(std::remove_cvref_t<Parameters>()...);
}

TEST(DeviceCallTest, EveryNameIsReadBack) {
  for (std::size_t i = 0; i < kDeviceCallCount; ++i) {
    const auto call = static_cast<DeviceCall>(i);
    DeviceCall parsed = call == DeviceCall::kMemAlloc ? DeviceCall::kMemFree
                                                      : DeviceCall::kMemAlloc;
    EXPECT_TRUE(ParseDeviceCall(DeviceCallName(call), &parsed));
    EXPECT_EQ(parsed, call) << DeviceCallName(call);
  }
}

TEST(DeviceCallTest, NamesAreInTheCasingOfStatistics) {
  EXPECT_STREQ(DeviceCallName(DeviceCall::kMemAlloc), "mem_alloc");
  EXPECT_STREQ(DeviceCallName(DeviceCall::kUserObjectRelease),
               "user_object_release");
}

TEST(DeviceCallTest, UnknownNameLeavesTheCallAlone) {
  DeviceCall call = DeviceCall::kEventQuery;
  EXPECT_FALSE(ParseDeviceCall("mem_alloc ", &call));
  EXPECT_FALSE(ParseDeviceCall("", &call));
  EXPECT_FALSE(ParseDeviceCall("MemAlloc", &call));
  EXPECT_EQ(call, DeviceCall::kEventQuery);
}

TEST(DeviceCallTest, EventsAreReadBackButAreNoEntryPoints) {
  DeviceCall parsed = DeviceCall::kMemAlloc;
  EXPECT_TRUE(ParseObservedCall("block_free", &parsed));
  EXPECT_EQ(parsed, DeviceCall::kBlockFree);
  EXPECT_STREQ(DeviceCallName(parsed), "block_free");
  EXPECT_FALSE(IsEntryPoint(parsed));
  EXPECT_FALSE(ParseDeviceCall("block_free", &parsed));
  EXPECT_TRUE(ParseObservedCall("mem_free", &parsed));
  EXPECT_EQ(parsed, DeviceCall::kMemFree);
  EXPECT_TRUE(IsEntryPoint(parsed));
}

TEST(DeviceCallTest, AnEntryPointThatADeviceLacksIsNotSupportedOrCounted) {
  RefusingDevice device;
  std::size_t calls = 0;
#define STRATA_DEVICE_CALL(method, name, parameters, arguments, operands)    \
  EXPECT_EQ(CallWithNothing(device, &Device::method), Status::kNotSupported) \
      << #name;                                                              \
  EXPECT_EQ(device.CallCount(DeviceCall::k##method), 0U) << #name;           \
  ++calls;
#include "strata/platform/calls/device_calls.def"
#undef STRATA_DEVICE_CALL
  EXPECT_EQ(calls, kDeviceCallCount);
}

}  // namespace
}  // namespace strata
