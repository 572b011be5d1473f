#include "strata/platform/registry.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "strata/platform/device.h"

namespace strata {
namespace {

template <class Function>
std::string MessageOf(Function function) {
  try {
    function();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing thrown";
}

TEST(RegistryTest, KnowsTheSimulatedPlatform) {
  const std::vector<std::string> names = PlatformNames();
  EXPECT_EQ(names.back(), "sim");
}

TEST(RegistryTest, BuildsThePlatformThatIsNamed) {
  PlatformOptions options;
  options.platform = "sim";
  options.sim_devices = 3;
  const auto platform = MakePlatform(options);
  EXPECT_STREQ(platform->name(), "sim");
  EXPECT_EQ(platform->device_count(), 3);
  EXPECT_EQ(platform->device(2).ordinal(), 2);
  EXPECT_TRUE(platform->device(2).caps().simulated);
}

TEST(RegistryTest, AutoTakesAPlatformWithADevice) {
  const auto platform = MakePlatform(PlatformOptions{});
  EXPECT_GE(platform->device_count(), 1);
}

TEST(RegistryTest, UnknownPlatformIsRefusedWithTheKnownOnes) {
  PlatformOptions options;
  options.platform = std::string("x");
  std::string known("auto");
  for (const std::string& name : PlatformNames()) {
    known.append(", ").append(name);
  }
  EXPECT_EQ(MessageOf([&] { MakePlatform(options); }),
            "strata_platform: unknown platform 'x' (known: " + known + ")");
}

TEST(RegistryTest, WrongOptionOfThePlatformReachesTheCaller) {
  PlatformOptions options;
  options.platform = "sim";
  options.sim_devices = 0;
  EXPECT_NE(
      MessageOf([&] { MakePlatform(options); }).find("strata_sim_devices"),
      std::string::npos);
}

}  // namespace
}  // namespace strata
