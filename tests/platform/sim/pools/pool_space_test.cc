#include "strata/platform/sim/pools/pool_space.h"

#include <gtest/gtest.h>

namespace strata::sim {
namespace {

TEST(PoolSpaceTest, WindowsOfDevicesLieNextToEachOther) {
  EXPECT_EQ(DeviceOfPoolAddress(kPoolWindowBegin - 1), -1);
  EXPECT_EQ(DeviceOfPoolAddress(kPoolWindowBegin), 0);
  EXPECT_EQ(DeviceOfPoolAddress(kPoolWindowBegin + kPoolWindowBytes), 1);
  EXPECT_EQ(
      DeviceOfPoolAddress(kPoolWindowBegin + kMaxSimDevices * kPoolWindowBytes),
      -1);
}

TEST(PoolSpaceTest, WindowsAreApartFromThoseOfMemAlloc) {
  EXPECT_EQ(DeviceOfAddress(kPoolWindowBegin), -1);
  EXPECT_EQ(DeviceOfPoolAddress(kDeviceWindowBegin +
                                kMaxSimDevices * kDeviceWindowBytes - 1),
            -1);
}

TEST(PoolSpaceTest, ChunkHasFramesAndAnAlignedAddressInItsWindow) {
  DeviceMemory memory(2, 4 * kFrameBytes);
  PoolSpace space(2, &memory);
  const auto chunk = space.Take(3 * kFrameBytes);
  ASSERT_TRUE(chunk.has_value());
  EXPECT_EQ(chunk->bytes, 3 * kFrameBytes);
  EXPECT_EQ(chunk->ptr % kFrameBytes, 0u);
  EXPECT_EQ(DeviceOfPoolAddress(chunk->ptr), 2);
  EXPECT_EQ(space.free_bytes(), kFrameBytes);
  EXPECT_FALSE(space.Take(2 * kFrameBytes).has_value());
  space.Give(*chunk);
  EXPECT_EQ(space.free_bytes(), 4 * kFrameBytes);
}

TEST(PoolSpaceTest, FramesComeBackWhenNoAddressesAreLeft) {
  DeviceMemory memory(0, kMaxDeviceMemoryBytes);
  PoolSpace space(0, &memory);
  const auto low = space.Take(kPoolWindowBytes / 2 - kFrameBytes);
  const auto middle = space.Take(kFrameBytes);
  const auto high = space.Take(kPoolWindowBytes / 2);
  ASSERT_TRUE(low && middle && high);
  space.Give(*low);
  space.Give(*high);
  const std::uint64_t free_bytes = space.free_bytes();
  EXPECT_FALSE(space.Take(kPoolWindowBytes / 2 + kFrameBytes).has_value());
  EXPECT_EQ(space.free_bytes(), free_bytes);
  EXPECT_TRUE(space.Take(kPoolWindowBytes / 2).has_value());
}

}  // namespace
}  // namespace strata::sim
