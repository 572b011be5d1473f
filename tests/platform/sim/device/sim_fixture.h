#ifndef STRATA_TESTS_PLATFORM_SIM_DEVICE_SIM_FIXTURE_H_
#define STRATA_TESTS_PLATFORM_SIM_DEVICE_SIM_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "strata/platform/platform_options.h"
#include "strata/platform/sim/device/sim_device.h"
#include "strata/platform/sim/device/sim_platform.h"
#include "strata/platform/sim/memory/frame_table.h"

namespace strata::sim {

inline PlatformOptions SimOptions(int devices, std::uint64_t frames) {
  PlatformOptions options;
  options.platform = "sim";
  options.sim_devices = devices;
  options.sim_memory_bytes = frames * kFrameBytes;
  return options;
}

// Two simulated devices of 64 frames.
class SimFixture : public ::testing::Test {
 protected:
  SimFixture() : SimFixture("phantom") {}
  explicit SimFixture(const char* data) : platform_(OptionsWith(data)) {}

  static constexpr std::uint64_t kFrames = 64;

  SimDevice& device(int ordinal = 0) { return platform_.sim_device(ordinal); }

  std::size_t FreeBytes(int ordinal = 0) {
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    EXPECT_EQ(device(ordinal).MemGetInfo(&free_bytes, &total_bytes),
              Status::kSuccess);
    return free_bytes;
  }

  DevicePtr Alloc(std::size_t bytes, int ordinal = 0) {
    DevicePtr ptr = 0;
    EXPECT_EQ(device(ordinal).MemAlloc(&ptr, bytes), Status::kSuccess);
    return ptr;
  }

  Stream NewStream(int ordinal = 0) {
    Stream stream;
    EXPECT_EQ(device(ordinal).StreamCreate(&stream, kStreamNonBlocking),
              Status::kSuccess);
    return stream;
  }

  Event NewEvent(int ordinal = 0) {
    Event event;
    EXPECT_EQ(device(ordinal).EventCreate(&event, kEventDisableTiming),
              Status::kSuccess);
    return event;
  }

  SimPlatform platform_;

 private:
  static PlatformOptions OptionsWith(const char* data) {
    PlatformOptions options = SimOptions(2, kFrames);
    options.sim_data = data;
    return options;
  }
};

}  // namespace strata::sim

#endif  // STRATA_TESTS_PLATFORM_SIM_DEVICE_SIM_FIXTURE_H_
