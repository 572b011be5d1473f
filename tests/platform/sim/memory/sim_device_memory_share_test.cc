// Memory for mapping, exported by descriptors and fabric handles.

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <set>

#include "strata/platform/sim/memory/device_memory.h"
#include "strata/tests/platform/sim/memory/virtual_fixture.h"
#include "strata/tests/testing/devices/statuses.h"

namespace strata::sim {
namespace {

class SimDeviceMemoryShareTest : public VirtualFixture {};

TEST_F(SimDeviceMemoryShareTest, ImportedHandleIsTheSameMemory) {  // V11 T73
  const MemHandle handle = Create(2, 0, ShareType::kPosixFd);
  Shareable shareable;
  ASSERT_EQ(device().ExportMemory(handle, ShareType::kPosixFd, &shareable),
            kOk);
  MemHandle imported;
  const int copy = dup(shareable.fd);
  Shareable copied;
  copied.fd = copy;
  ASSERT_EQ(device(1).ImportMemory(&imported, ShareType::kPosixFd, copied),
            kOk);
  EXPECT_NE(imported, handle);
  EXPECT_EQ(close(copy), 0);
  EXPECT_EQ(close(shareable.fd), 0);
  EXPECT_EQ(FreeFrames(), kFrames - 2);
  ASSERT_EQ(device().ReleaseMemory(handle), kOk);
  EXPECT_EQ(FreeFrames(), kFrames - 2);
  EXPECT_EQ(Map(Reserve(2), 2, imported), kOk);
  EXPECT_EQ(device().ReleaseMemory(imported), kOk);
}

TEST_F(SimDeviceMemoryShareTest, ExportedDescriptorKeepsMemory) {  // V4 V11
  const MemHandle handle = Create(2, 0, ShareType::kPosixFd);
  Shareable shareable;
  ASSERT_EQ(device().ExportMemory(handle, ShareType::kPosixFd, &shareable),
            kOk);
  ASSERT_EQ(device().ReleaseMemory(handle), kOk);
  EXPECT_EQ(FreeFrames(), kFrames - 2);
  MemHandle imported;
  ASSERT_EQ(device().ImportMemory(&imported, ShareType::kPosixFd, shareable),
            kOk);
  ASSERT_EQ(device().ReleaseMemory(imported), kOk);
  EXPECT_EQ(FreeFrames(), kFrames - 2);
  ASSERT_EQ(close(shareable.fd), 0);
  EXPECT_EQ(FreeFrames(), kFrames);
  EXPECT_EQ(device().Leaks(), SimLeaks{});
}

TEST_F(SimDeviceMemoryShareTest, ManyExportsDoNotUseUpDescriptors) {
  const MemHandle handle = Create(1, 0, ShareType::kPosixFd);
  std::set<int> seen;
  for (int i = 0; i < 3000; ++i) {
    Shareable shareable;
    ASSERT_EQ(device().ExportMemory(handle, ShareType::kPosixFd, &shareable),
              kOk);
    seen.insert(shareable.fd);
    ASSERT_EQ(close(shareable.fd), 0);
  }
  EXPECT_LT(seen.size(), 10u);
}

TEST_F(SimDeviceMemoryShareTest, SharingMustHaveBeenAskedFor) {  // V11
  Shareable shareable;
  EXPECT_EQ(device().ExportMemory(Create(1), ShareType::kPosixFd, &shareable),
            kBad);
  const MemHandle handle = Create(1, 0, ShareType::kPosixFd);
  EXPECT_EQ(device().ExportMemory(handle, ShareType::kNone, &shareable), kBad);
  EXPECT_EQ(device().ExportMemory(handle, ShareType::kFabric, &shareable),
            kBad);
  EXPECT_EQ(device().ExportMemory({}, ShareType::kPosixFd, &shareable), kBad);
  EXPECT_EQ(device().ExportMemory(handle, ShareType::kPosixFd, nullptr), kBad);
  EXPECT_EQ(shareable.fd, -1);
}

TEST_F(SimDeviceMemoryShareTest, ForeignDescriptorIsNotImported) {
  Shareable foreign;
  foreign.fd = eventfd(0, EFD_CLOEXEC);
  ASSERT_GE(foreign.fd, 0);
  MemHandle handle;
  const auto import = [&](const Shareable& shareable) {
    return device().ImportMemory(&handle, ShareType::kPosixFd, shareable);
  };
  EXPECT_EQ(import(foreign), kBad);
  EXPECT_EQ(close(foreign.fd), 0);
  EXPECT_EQ(import(foreign), kBad);
  EXPECT_EQ(import({}), kBad);
  EXPECT_EQ(device().ImportMemory(&handle, ShareType::kNone, {}), kBad);
  EXPECT_EQ(device().ImportMemory(nullptr, ShareType::kPosixFd, {}), kBad);
  EXPECT_EQ(handle, MemHandle{});
}

TEST_F(SimDeviceMemoryShareTest, FabricNeedsPermission) {  // V11
  MemProperties properties;
  properties.share = ShareType::kFabric;
  MemHandle handle;
  EXPECT_EQ(device().CreateMemory(&handle, kFrameBytes, properties),
            Status::kNotPermitted);
  EXPECT_EQ(device().ImportMemory(&handle, ShareType::kFabric, {}),
            Status::kNotPermitted);
  EXPECT_EQ(handle, MemHandle{});
}

TEST(SimDeviceFabricTest, FabricHandleStandsForLivingMemory) {
  PlatformOptions options = SimOptions(1, 8);
  options.sim_fabric = true;
  SimPlatform platform(options);
  SimDevice& device = platform.sim_device(0);
  EXPECT_TRUE(device.caps().share_fabric);
  MemProperties properties;
  properties.share = ShareType::kFabric;
  MemHandle handle;
  ASSERT_EQ(device.CreateMemory(&handle, kFrameBytes, properties), kOk);
  Shareable shareable;
  ASSERT_EQ(device.ExportMemory(handle, ShareType::kFabric, &shareable), kOk);
  MemHandle imported;
  EXPECT_EQ(device.ImportMemory(&imported, ShareType::kFabric, {}), kBad);
  ASSERT_EQ(device.ImportMemory(&imported, ShareType::kFabric, shareable), kOk);
  ASSERT_EQ(device.ReleaseMemory(handle), kOk);
  ASSERT_EQ(device.ReleaseMemory(imported), kOk);
  EXPECT_EQ(device.Leaks(), SimLeaks{});
  EXPECT_EQ(device.ImportMemory(&imported, ShareType::kFabric, shareable),
            kBad);
}

}  // namespace
}  // namespace strata::sim
