// Memory that is freed while work on it is pending: an illegal address when the
// work runs, for every kind of memory.

#include <gtest/gtest.h>

#include <cstdint>

#include "strata/platform/device_work.h"
#include "strata/platform/sim/device/sim_platform.h"
#include "strata/tests/platform/sim/device/sim_fixture.h"
#include "strata/tests/testing/devices/statuses.h"

namespace strata::sim {
namespace {

PlatformOptions LazyOptions() {
  PlatformOptions options = SimOptions(2, 16);
  options.sim_data = "backed";
  options.sim_progress = "lazy";
  options.sim_free = "nosync";
  return options;
}

class SimStaleMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(device_.MemAlloc(&other_, kFrameBytes), kOk);
  }

  DevicePtr Map() {
    DevicePtr ptr = 0;
    MemHandle handle;
    const AccessDescriptor access;
    EXPECT_EQ(device_.ReserveRange(&ptr, kFrameBytes, 0, 0), kOk);
    EXPECT_EQ(device_.CreateMemory(&handle, kFrameBytes, {}), kOk);
    EXPECT_EQ(device_.MapRange(ptr, kFrameBytes, 0, handle), kOk);
    EXPECT_EQ(device_.SetAccess(ptr, kFrameBytes, &access, 1), kOk);
    return ptr;
  }

  void Copy(DevicePtr target, DevicePtr source) {
    EXPECT_EQ(device_.MemcpyAsync(target, source, 64, device_.LegacyStream()),
              kOk);
  }

  SimPlatform platform_{LazyOptions()};
  SimDevice& device_ = platform_.sim_device(0);
  DevicePtr other_ = 0;
};

TEST_F(SimStaleMemoryTest, UnmappedUnderACopy) {  // H4
  const DevicePtr ptr = Map();
  Copy(other_, ptr);
  EXPECT_EQ(device_.UnmapRange(ptr, kFrameBytes), kOk);
  EXPECT_EQ(device_.Synchronize(), Status::kIllegalAddress);
}

TEST_F(SimStaleMemoryTest, AccessRevokedUnderAFill) {  // V8
  const DevicePtr ptr = Map();
  EXPECT_EQ(device_.MemsetAsync(ptr, 1, 64, device_.LegacyStream()), kOk);
  AccessDescriptor access;
  access.access = Access::kRead;
  EXPECT_EQ(device_.SetAccess(ptr, kFrameBytes, &access, 1), kOk);
  EXPECT_EQ(device_.Synchronize(), Status::kIllegalAddress);
}

TEST_F(SimStaleMemoryTest, OtherMemoryMappedUnderACopyIsWhatItFinds) {  // V14
  const DevicePtr ptr = Map();
  EXPECT_EQ(device_.MemsetAsync(ptr, 7, 64, device_.LegacyStream()), kOk);
  MemHandle handle;
  const AccessDescriptor access;
  EXPECT_EQ(device_.UnmapRange(ptr, kFrameBytes), kOk);
  EXPECT_EQ(device_.CreateMemory(&handle, kFrameBytes, {}), kOk);
  EXPECT_EQ(device_.MapRange(ptr, kFrameBytes, 0, handle), kOk);
  EXPECT_EQ(device_.SetAccess(ptr, kFrameBytes, &access, 1), kOk);
  EXPECT_EQ(device_.Synchronize(), kOk);
  EXPECT_EQ(*static_cast<char*>(device_.HostView(ptr, 64)), 7);
}

TEST_F(SimStaleMemoryTest, FreedUnderACopy) {  // H3
  DevicePtr ptr = 0;
  ASSERT_EQ(device_.MemAlloc(&ptr, 64), kOk);
  Copy(ptr, other_);
  EXPECT_EQ(device_.MemFree(ptr), kOk);
  EXPECT_EQ(device_.Synchronize(), Status::kIllegalAddress);
}

TEST_F(SimStaleMemoryTest, PinnedMemoryFreedUnderACopy) {  // H5
  void* pinned = nullptr;
  ASSERT_EQ(device_.MallocHost(&pinned, 4096, 0), kOk);
  Copy(reinterpret_cast<DevicePtr>(pinned), other_);
  EXPECT_EQ(device_.FreeHost(pinned), kOk);
  EXPECT_EQ(device_.Synchronize(), Status::kIllegalAddress);
}

TEST_F(SimStaleMemoryTest, WorkFindsNoAccessWhenItRuns) {  // T64
  DevicePtr on_one = 0;
  ASSERT_EQ(platform_.sim_device(1).MemAlloc(&on_one, 64), kOk);
  const WorkRange range{on_one, 64, true};
  ASSERT_EQ(platform_.work(0)->Enqueue(device_.LegacyStream(), &range, 1, 0, 1),
            kOk);
  EXPECT_EQ(device_.Synchronize(), Status::kIllegalAddress);
  EXPECT_EQ(platform_.sim_device(1).Synchronize(), kOk);
}

}  // namespace
}  // namespace strata::sim
