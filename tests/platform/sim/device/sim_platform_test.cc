#include "strata/platform/sim/device/sim_platform.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "strata/platform/sim/memory/device_memory.h"
#include "strata/tests/platform/sim/device/sim_fixture.h"

namespace strata::sim {
namespace {

std::string OptionsError(const PlatformOptions& options) {
  try {
    SimPlatform platform(options);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(SimPlatformTest, NumberOfDevicesIsChecked) {
  for (const int devices : {-1, 0, kMaxSimDevices + 1}) {
    EXPECT_EQ(
        OptionsError(SimOptions(devices, 1)).rfind("strata_sim_devices", 0), 0u)
        << devices;
  }
  SimPlatform most(SimOptions(kMaxSimDevices, 1));
  EXPECT_EQ(most.device_count(), kMaxSimDevices);
}

TEST(SimPlatformTest, MemoryIsChecked) {
  PlatformOptions options;
  for (const std::uint64_t bytes : {std::uint64_t{0}, kFrameBytes - 1,
                                    kMaxDeviceMemoryBytes + 1, UINT64_MAX}) {
    options.sim_memory_bytes = bytes;
    EXPECT_EQ(OptionsError(options).rfind("strata_sim_memory", 0), 0u) << bytes;
  }
  for (const std::uint64_t bytes : {kFrameBytes, kMaxDeviceMemoryBytes}) {
    options.sim_memory_bytes = bytes;
    EXPECT_EQ(OptionsError(options), "accepted") << bytes;
  }
}

TEST(SimPlatformTest, FaultsAreChecked) {
  PlatformOptions options = SimOptions(2, 1);
  options.sim_faults = "mem_alloc:nth=x";
  EXPECT_EQ(OptionsError(options).rfind("strata_sim_fault", 0), 0u);
  options.sim_faults = "mem_alloc:device=2";
  EXPECT_EQ(OptionsError(options).rfind("strata_sim_fault", 0), 0u);
}

TEST(SimPlatformTest, FaultsOfTheOptionsReachTheDevicesTheyName) {
  PlatformOptions options = SimOptions(2, 8);
  options.sim_faults = "mem_alloc:nth=2,device=1;event_create";
  SimPlatform platform(options);
  for (const int ordinal : {0, 1}) {
    SimDevice& device = platform.sim_device(ordinal);
    DevicePtr ptr = 0;
    EXPECT_EQ(device.MemAlloc(&ptr, 64), Status::kSuccess);
    EXPECT_EQ(device.MemAlloc(&ptr, 64),
              ordinal == 1 ? Status::kMemoryAllocation : Status::kSuccess);
    Event event;
    EXPECT_EQ(device.EventCreate(&event, 0), Status::kUnknown);
  }
}

TEST(SimPlatformTest, SeedOfTheOptionsDrivesProbabilities) {
  const auto pattern = [](std::uint64_t seed) {
    PlatformOptions options = SimOptions(1, 8);
    options.sim_faults = "synchronize:probability=0.5";
    options.sim_seed = seed;
    SimPlatform platform(options);
    std::string text;
    for (int i = 0; i < 64; ++i) {
      text +=
          platform.sim_device(0).Synchronize() == Status::kSuccess ? '.' : 'x';
    }
    return text;
  };
  EXPECT_EQ(pattern(5), pattern(5));
  EXPECT_NE(pattern(5), pattern(6));
}

TEST(SimPlatformTest, CapsPromiseOnlyWhatWorks) {
  SimPlatform platform(SimOptions(1, 1));
  SimDevice& device = platform.sim_device(0);
  const Caps& caps = device.caps();
  EXPECT_TRUE(caps.simulated && caps.pinned_memory && caps.managed_memory &&
              caps.mem_pools && caps.peer_access);
  EXPECT_TRUE(caps.virtual_memory && caps.share_fd);
  EXPECT_TRUE(caps.capture && caps.graphs && caps.graph_mem_nodes &&
              caps.user_objects);
  EXPECT_FALSE(caps.share_fabric);
  EXPECT_EQ(caps.alloc_alignment_bytes, 512u);
  EXPECT_EQ(caps.map_granularity_bytes, kFrameBytes);
}

TEST(SimPlatformTest, LeakReportNamesDevicesAndWhatTheyLost) {
  SimPlatform platform(SimOptions(2, 8));
  EXPECT_EQ(platform.LeakReport(), "");
  SimDevice& device = platform.sim_device(1);
  DevicePtr a = 0;
  DevicePtr b = 0;
  DevicePtr managed = 0;
  void* pinned = nullptr;
  std::vector<char> memory(100);
  Stream stream;
  Event event;
  ASSERT_EQ(device.MemAlloc(&a, 1000), Status::kSuccess);
  ASSERT_EQ(device.MemAlloc(&b, kFrameBytes), Status::kSuccess);
  ASSERT_EQ(device.MallocManaged(&managed, 70, kManagedGlobal),
            Status::kSuccess);
  ASSERT_EQ(device.MallocHost(&pinned, 80, 0), Status::kSuccess);
  ASSERT_EQ(device.HostRegister(memory.data(), 100, 0), Status::kSuccess);
  ASSERT_EQ(device.StreamCreate(&stream, 0), Status::kSuccess);
  ASSERT_EQ(device.EventCreate(&event, 0), Status::kSuccess);
  EXPECT_EQ(platform.LeakReport(),
            "sim:1: 2 device allocations (2098152 bytes), 1 pinned range (80 "
            "bytes), 1 registered range (100 bytes), 1 managed range (70 "
            "bytes), 1 stream, 1 event\n");
  EXPECT_EQ(device.MemFree(a), Status::kSuccess);
  EXPECT_EQ(device.MemFree(b), Status::kSuccess);
  EXPECT_EQ(device.MemFree(managed), Status::kSuccess);
  EXPECT_EQ(device.FreeHost(pinned), Status::kSuccess);
  EXPECT_EQ(device.HostUnregister(memory.data()), Status::kSuccess);
  EXPECT_EQ(device.StreamDestroy(stream), Status::kSuccess);
  EXPECT_EQ(device.EventDestroy(event), Status::kSuccess);
  EXPECT_EQ(platform.LeakReport(), "");
}

}  // namespace
}  // namespace strata::sim
