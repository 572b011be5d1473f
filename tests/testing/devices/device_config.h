#ifndef STRATA_TESTS_TESTING_DEVICES_DEVICE_CONFIG_H_
#define STRATA_TESTS_TESTING_DEVICES_DEVICE_CONFIG_H_

#include <gtest/gtest.h>

#include <iosfwd>
#include <string>
#include <vector>

#include "strata/platform/platform_options.h"

namespace strata {

// A device that the conformance tests run on.
struct DeviceConfig {
  std::string name;  // part of the name of the test's instance
  PlatformOptions options;
  // Each call is made twice; the first one fails (faulting_platform.h).
  bool faulted = false;
};

// The simulated device under each of its policies, with and without bytes.
std::vector<DeviceConfig> SimulatedDevices();
// SimulatedDevices(), two devices whose calls fail first, the CUDA device,
// whether or not this machine has one, and the CUDA device over the stand-in
// driver, of which each call fails first.
std::vector<DeviceConfig> AllDevices();

// For INSTANTIATE_TEST_SUITE_P.
std::string NameOfDevice(const ::testing::TestParamInfo<DeviceConfig>& info);

std::ostream& operator<<(std::ostream& out, const DeviceConfig& config);

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_DEVICES_DEVICE_CONFIG_H_
