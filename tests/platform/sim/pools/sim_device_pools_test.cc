// Pools through the entry points of the simulated device.

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <thread>
#include <vector>

#include "strata/platform/sim/faults/cost_table.h"
#include "strata/platform/sim/pools/pool_space.h"
#include "strata/platform/sim/pools/stream_pool.h"
#include "strata/tests/platform/sim/pools/sim_pools_fixture.h"

namespace strata::sim {
namespace {

constexpr std::uint64_t kKeepAll = std::numeric_limits<std::uint64_t>::max();

AccessDescriptor AccessFrom(int ordinal, Access access) {
  AccessDescriptor descriptor;
  descriptor.location.id = ordinal;
  descriptor.access = access;
  return descriptor;
}

class SimDevicePoolsTest : public SimPoolsFixture {};

TEST_F(SimDevicePoolsTest, EachDeviceHasOneDefaultPool) {
  EXPECT_TRUE(DefaultPool());
  EXPECT_EQ(DefaultPool(), DefaultPool());
  EXPECT_NE(DefaultPool(0), DefaultPool(1));
  EXPECT_EQ(device().DefaultMemPool(nullptr), Status::kInvalidValue);
}

TEST_F(SimDevicePoolsTest, WarmPoolGivesTheSameBlockToTheSameStream) {  // T49
  const DevicePtr ptr = AllocAsync(kMiB, DefaultPool(), stream_);
  FreeAsync(ptr, stream_);
  EXPECT_EQ(AllocAsync(kMiB, DefaultPool(), stream_), ptr);
}

TEST_F(SimDevicePoolsTest, NullResultIsRefused) {  // P3
  EXPECT_EQ(device().MallocFromPoolAsync(nullptr, kMiB, DefaultPool(), stream_),
            Status::kInvalidValue);
}

TEST_F(SimDevicePoolsTest, AllocationNeedsALiveStream) {  // P3
  DevicePtr ptr = 77;
  EXPECT_EQ(device().MallocFromPoolAsync(&ptr, kMiB, DefaultPool(), Stream{}),
            Status::kInvalidResourceHandle);
  ASSERT_EQ(device().StreamDestroy(stream_), Status::kSuccess);
  EXPECT_EQ(device().MallocFromPoolAsync(&ptr, kMiB, DefaultPool(), stream_),
            Status::kInvalidResourceHandle);
  EXPECT_EQ(ptr, 77u);
}

TEST_F(SimDevicePoolsTest, AllocationNeedsAPool) {
  DevicePtr ptr = 77;
  EXPECT_EQ(device().MallocFromPoolAsync(&ptr, kMiB, MemPool{}, stream_),
            Status::kInvalidValue);
  EXPECT_EQ(ptr, 77u);
}

TEST_F(SimDevicePoolsTest, AbsurdSizeIsOutOfMemoryAndChangesNothing) {  // P3
  FillDefaultPool();
  DevicePtr ptr = 77;
  for (const std::size_t bytes :
       {std::numeric_limits<std::size_t>::max(),
        static_cast<std::size_t>(kFrames * kFrameBytes + 1)}) {
    EXPECT_EQ(device().MallocFromPoolAsync(&ptr, bytes, DefaultPool(), stream_),
              Status::kMemoryAllocation);
  }
  EXPECT_EQ(ptr, 77u);
  EXPECT_EQ(Reserved(DefaultPool()), kPoolGrowthBytes);
}

TEST_F(SimDevicePoolsTest, NoBytesAreANullAddress) {
  EXPECT_EQ(AllocAsync(0, DefaultPool(), stream_), 0u);
  EXPECT_EQ(device().Leaks().pool_blocks, 0u);
}

TEST_F(SimDevicePoolsTest, FreeingWhatIsNotAllocatedIsRefused) {  // P2
  const DevicePtr ptr = AllocAsync(kMiB, DefaultPool(), stream_);
  EXPECT_EQ(device().FreeAsync(ptr + 512, stream_), Status::kInvalidValue);
  FreeAsync(ptr, stream_);
  EXPECT_EQ(device().FreeAsync(ptr, stream_), Status::kInvalidValue);
  EXPECT_EQ(device().MemFree(ptr), Status::kInvalidValue);
}

TEST_F(SimDevicePoolsTest, NullIsFreedInNoTime) {  // P2
  EXPECT_EQ(device().FreeAsync(0, stream_), Status::kSuccess);
  EXPECT_EQ(device().PendingCount(), 0u);
}

TEST_F(SimDevicePoolsTest, FreeNeedsALiveStream) {  // S9
  const DevicePtr ptr = AllocAsync(kMiB, DefaultPool(), stream_);
  ASSERT_EQ(device().StreamDestroy(stream_), Status::kSuccess);
  EXPECT_EQ(device().FreeAsync(0, stream_), Status::kInvalidResourceHandle);
  EXPECT_EQ(device().FreeAsync(ptr, stream_), Status::kInvalidResourceHandle);
  FreeAsync(ptr, device().LegacyStream());
}

TEST_F(SimDevicePoolsTest, FreeAsyncTakesImmediateMemory) {  // P2, T58
  const DevicePtr ptr = Alloc(kMiB);
  FreeAsync(ptr, stream_);
  EXPECT_EQ(device().MemFree(ptr), Status::kInvalidValue);
  EXPECT_EQ(device().Leaks().allocations, 0u);
}

TEST_F(SimDevicePoolsTest, MemFreeTakesPoolMemory) {  // P2, T57
  const DevicePtr ptr = AllocAsync(kMiB, DefaultPool(), stream_);
  EXPECT_EQ(device().StreamSynchronize(stream_), Status::kSuccess);
  EXPECT_EQ(device().MemFree(ptr), Status::kSuccess);
  EXPECT_EQ(Get(DefaultPool(), PoolAttribute::kUsedCurrent), 0u);
}

TEST_F(SimDevicePoolsTest, StreamOfAnotherDeviceMayAllocateAndFree) {  // P1, P2
  const Stream other = NewStream(1);
  const std::size_t free1 = FreeBytes(1);
  const DevicePtr ptr = AllocAsync(kMiB, DefaultPool(0), other);
  EXPECT_EQ(DeviceOfPoolAddress(ptr), 0);
  EXPECT_EQ(FreeBytes(1), free1);
  FreeAsync(ptr, stream_);
  EXPECT_EQ(device(1).FreeAsync(ptr, other), Status::kInvalidValue);
}

TEST_F(SimDevicePoolsTest, DifferentStreamGetsTheBlockOnlyByARule) {  // T50
  for (const auto attribute :
       {PoolAttribute::kReuseFollowEventDependencies,
        PoolAttribute::kReuseAllowOpportunistic,
        PoolAttribute::kReuseAllowInternalDependencies}) {
    EXPECT_EQ(device().PoolSetAttribute(DefaultPool(), attribute, 0),
              Status::kSuccess);
  }
  const DevicePtr ptr = AllocAsync(kMiB, DefaultPool(), stream_);
  FreeAsync(ptr, stream_);
  const DevicePtr other = AllocAsync(kMiB, DefaultPool(), NewStream());
  EXPECT_NE(other, ptr);
  FreeAsync(other, stream_);
  EXPECT_EQ(device().PoolSetAttribute(
                DefaultPool(), PoolAttribute::kReuseAllowOpportunistic, 1),
            Status::kSuccess);
  EXPECT_EQ(AllocAsync(kMiB, DefaultPool(), NewStream()), ptr);
}

TEST_F(SimDevicePoolsTest, StreamSynchronizeReleasesIdleMemory) {  // P6, T54
  FillDefaultPool();
  EXPECT_EQ(device().StreamSynchronize(stream_), Status::kSuccess);
  EXPECT_EQ(Reserved(DefaultPool()), 0u);
}

TEST_F(SimDevicePoolsTest, EventSynchronizeReleasesIdleMemory) {  // P6
  FillDefaultPool();
  EXPECT_EQ(device().EventSynchronize(NewEvent()), Status::kSuccess);
  EXPECT_EQ(Reserved(DefaultPool()), 0u);
}

TEST_F(SimDevicePoolsTest, DeviceSynchronizeReleasesIdleMemory) {  // P6
  FillDefaultPool();
  EXPECT_EQ(device().Synchronize(), Status::kSuccess);
  EXPECT_EQ(Reserved(DefaultPool()), 0u);
}

TEST_F(SimDevicePoolsTest, QueriesAndTheLegacyStreamReleaseNothing) {  // P6
  FillDefaultPool();
  EXPECT_EQ(device().StreamQuery(stream_), Status::kSuccess);
  EXPECT_EQ(device().EventQuery(NewEvent()), Status::kSuccess);
  EXPECT_EQ(device().StreamSynchronize(device().LegacyStream()),
            Status::kSuccess);
  EXPECT_EQ(device(1).Synchronize(), Status::kSuccess);
  EXPECT_EQ(Reserved(DefaultPool()), kPoolGrowthBytes);
}

TEST_F(SimDevicePoolsTest, ThresholdKeepsMemoryAndTrimReleasesIt) {  // T54
  EXPECT_EQ(device().PoolSetAttribute(
                DefaultPool(), PoolAttribute::kReleaseThreshold, kKeepAll),
            Status::kSuccess);
  FillDefaultPool();
  EXPECT_EQ(device().Synchronize(), Status::kSuccess);
  EXPECT_EQ(Reserved(DefaultPool()), kPoolGrowthBytes);
  EXPECT_EQ(device().PoolTrimTo(DefaultPool(), 0), Status::kSuccess);
  EXPECT_EQ(Reserved(DefaultPool()), 0u);
  EXPECT_EQ(FreeBytes(), kFrames * kFrameBytes);
}

TEST_F(SimDevicePoolsTest, MemAllocGetsWhatPoolsKeep) {  // P12
  EXPECT_EQ(device().PoolSetAttribute(
                DefaultPool(), PoolAttribute::kReleaseThreshold, kKeepAll),
            Status::kSuccess);
  FillDefaultPool();
  Alloc(kFrames * kFrameBytes);
  EXPECT_EQ(Reserved(DefaultPool()), 0u);
}

TEST_F(SimDevicePoolsTest, MemAllocThatFailsLeavesPoolsAlone) {  // P12
  FillDefaultPool();
  const DevicePtr held = AllocAsync(kPoolGrowthBytes, DefaultPool(), stream_);
  const DevicePtr idle = AllocAsync(kPoolGrowthBytes, DefaultPool(), stream_);
  FreeAsync(idle, stream_);
  DevicePtr ptr = 77;
  EXPECT_EQ(device().MemAlloc(&ptr, kFrames * kFrameBytes),
            Status::kMemoryAllocation);
  EXPECT_EQ(ptr, 77u);
  EXPECT_EQ(Reserved(DefaultPool()), 2 * kPoolGrowthBytes);
  FreeAsync(held, stream_);
}

TEST_F(SimDevicePoolsTest, PoolIsOnTheDeviceOfItsProperties) {
  const MemPool pool = NewPool(OnDevice(1));
  const DevicePtr ptr = AllocAsync(kMiB, pool, stream_);
  EXPECT_EQ(DeviceOfPoolAddress(ptr), 1);
  EXPECT_EQ(FreeBytes(1), kFrames * kFrameBytes - kPoolGrowthBytes);
  EXPECT_EQ(device(1).Leaks().pools, 1u);
}

TEST_F(SimDevicePoolsTest, PoolCreateRefusesBadArguments) {
  MemPool pool;
  EXPECT_EQ(device().PoolCreate(nullptr, {}, 0), Status::kInvalidValue);
  EXPECT_EQ(device().PoolCreate(&pool, OnDevice(2), 0), Status::kInvalidValue);
  EXPECT_EQ(device().PoolCreate(&pool, OnDevice(-1), 0), Status::kInvalidValue);
  MemProperties host;
  host.location.kind = Location::Kind::kHost;
  EXPECT_EQ(device().PoolCreate(&pool, host, 0), Status::kInvalidValue);
  EXPECT_EQ(
      device().PoolCreate(&pool, OnDevice(0, static_cast<ShareType>(2)), 0),
      Status::kInvalidValue);
  EXPECT_EQ(device().PoolCreate(&pool, OnDevice(0, ShareType::kFabric), 0),
            Status::kNotPermitted);
  EXPECT_FALSE(pool);
}

TEST_F(SimDevicePoolsTest, DestroyedPoolIsNoPool) {  // P9, T56
  const MemPool pool = NewPool();
  const DevicePtr ptr = AllocAsync(kMiB, pool, stream_);
  EXPECT_EQ(device().PoolDestroy(pool), Status::kSuccess);
  std::uint64_t value = 0;
  DevicePtr more = 0;
  EXPECT_EQ(device().PoolDestroy(pool), Status::kInvalidValue);
  EXPECT_EQ(device().PoolTrimTo(pool, 0), Status::kInvalidValue);
  EXPECT_EQ(
      device().PoolSetAttribute(pool, PoolAttribute::kReleaseThreshold, 0),
      Status::kInvalidValue);
  EXPECT_EQ(
      device().PoolGetAttribute(pool, PoolAttribute::kUsedCurrent, &value),
      Status::kInvalidValue);
  EXPECT_EQ(device().PoolSetAccess(pool, nullptr, 0), Status::kInvalidValue);
  EXPECT_EQ(device().MallocFromPoolAsync(&more, kMiB, pool, stream_),
            Status::kInvalidValue);
  EXPECT_EQ(device().MemsetAsync(ptr, 0, kMiB, stream_), Status::kSuccess);
  FreeAsync(ptr, stream_);
  EXPECT_EQ(FreeBytes(), kFrames * kFrameBytes);
}

TEST_F(SimDevicePoolsTest, DefaultPoolStays) {  // T56
  EXPECT_EQ(device().PoolDestroy(DefaultPool()), Status::kInvalidValue);
  AllocAsync(kMiB, DefaultPool(), stream_);
}

TEST_F(SimDevicePoolsTest, AttributesNeedAResultAndARightValue) {  // T55
  EXPECT_EQ(device().PoolGetAttribute(DefaultPool(),
                                      PoolAttribute::kUsedCurrent, nullptr),
            Status::kInvalidValue);
  EXPECT_EQ(
      device().PoolSetAttribute(DefaultPool(), PoolAttribute::kUsedHigh, 1),
      Status::kInvalidValue);
  EXPECT_EQ(
      device().PoolSetAttribute(DefaultPool(), PoolAttribute::kUsedHigh, 0),
      Status::kSuccess);
}

TEST_F(SimDevicePoolsTest, PeerReachesPoolMemoryOnlyWithAccess) {  // P10
  const DevicePtr ptr = AllocAsync(kMiB, DefaultPool(), stream_);
  const Stream peer = NewStream(1);
  EXPECT_EQ(device(1).EnablePeerAccess(0), Status::kSuccess);
  EXPECT_EQ(device(1).MemsetAsync(ptr, 0, kMiB, peer), Status::kInvalidValue);
  const AccessDescriptor access = AccessFrom(1, Access::kReadWrite);
  EXPECT_EQ(device().PoolSetAccess(DefaultPool(), &access, 1),
            Status::kSuccess);
  EXPECT_EQ(device(1).MemsetAsync(ptr, 0, kMiB, peer), Status::kSuccess);
  const DevicePtr later = AllocAsync(kMiB, DefaultPool(), stream_);
  EXPECT_EQ(device(1).MemsetAsync(later, 0, kMiB, peer), Status::kSuccess);
}

TEST_F(SimDevicePoolsTest, OwnerKeepsItsAccess) {  // P10
  AccessDescriptor access = AccessFrom(0, Access::kNone);
  EXPECT_EQ(device().PoolSetAccess(DefaultPool(), &access, 1),
            Status::kInvalidDevice);
  access.access = Access::kReadWrite;
  EXPECT_EQ(device().PoolSetAccess(DefaultPool(), &access, 1),
            Status::kSuccess);
}

TEST_F(SimDevicePoolsTest, SetAccessRefusesBadArguments) {
  const std::vector<AccessDescriptor> three(3);
  EXPECT_EQ(device().PoolSetAccess(DefaultPool(), nullptr, 1),
            Status::kInvalidValue);
  EXPECT_EQ(device().PoolSetAccess(DefaultPool(), three.data(), 3),
            Status::kNotSupported);
  AccessDescriptor access = AccessFrom(2, Access::kRead);
  EXPECT_EQ(device().PoolSetAccess(DefaultPool(), &access, 1),
            Status::kInvalidDevice);
  access = AccessFrom(1, static_cast<Access>(2));
  EXPECT_EQ(device().PoolSetAccess(DefaultPool(), &access, 1),
            Status::kInvalidValue);
  access.location.kind = Location::Kind::kHost;
  EXPECT_EQ(device().PoolSetAccess(DefaultPool(), &access, 1),
            Status::kNotSupported);
}

TEST_F(SimDevicePoolsTest, OneBadDescriptorLeavesAllRightsAsTheyWere) {
  const DevicePtr ptr = AllocAsync(kMiB, DefaultPool(), stream_);
  const std::vector<AccessDescriptor> two = {AccessFrom(1, Access::kReadWrite),
                                             AccessFrom(0, Access::kNone)};
  EXPECT_NE(device().PoolSetAccess(DefaultPool(), two.data(), 2),
            Status::kSuccess);
  EXPECT_EQ(device(1).MemsetAsync(ptr, 0, kMiB, NewStream(1)),
            Status::kInvalidValue);
}

TEST_F(SimDevicePoolsTest, LiveBlockIsAnEndOfACopyAndAFreedOneIsNot) {
  const DevicePtr ptr = AllocAsync(kMiB, DefaultPool(), stream_);
  const DevicePtr other = Alloc(kMiB);
  EXPECT_EQ(device().MemcpyAsync(ptr, other, kMiB, stream_), Status::kSuccess);
  EXPECT_EQ(device().MemcpyAsync(ptr, other, kMiB + 1, stream_),
            Status::kInvalidValue);
  FreeAsync(ptr, stream_);
  EXPECT_EQ(device().MemcpyAsync(ptr, other, kMiB, stream_),
            Status::kInvalidValue);
}

TEST_F(SimDevicePoolsTest, PointerAttributesKnowPoolMemory) {
  PointerInfo info;
  const DevicePtr ptr = AllocAsync(kMiB, NewPool(OnDevice(1)), stream_);
  EXPECT_EQ(device().PointerAttributes(ptr, &info), Status::kSuccess);
  EXPECT_EQ(info.type, MemoryType::kDevice);
  EXPECT_EQ(info.device, 1);
}

TEST_F(SimDevicePoolsTest, LeaksNameBlocksAndPools) {
  AllocAsync(1000, NewPool(), stream_);
  EXPECT_EQ(device().Leaks().pool_blocks, 1u);
  EXPECT_EQ(ToString(device().Leaks()),
            "1 pool block (1024 bytes), 1 pool, 1 stream");
}

TEST_F(SimDevicePoolsTest, GrowthCostsFramesAndAHitDoesNot) {
  const MemPool pool = DefaultPool();
  std::uint64_t before = device().modelled_ns();
  AllocAsync(kMiB, pool, stream_);
  const std::uint64_t miss = device().modelled_ns() - before;
  before = device().modelled_ns();
  AllocAsync(kMiB, pool, stream_);
  const std::uint64_t hit = device().modelled_ns() - before;
  EXPECT_EQ(hit, CallCostNs(DeviceCall::kMallocFromPoolAsync, 0));
  EXPECT_EQ(miss,
            CallCostNs(DeviceCall::kMallocFromPoolAsync, kPoolGrowthBytes));
  EXPECT_GT(miss, hit);
}

TEST_F(SimDevicePoolsTest, InjectedFailuresLeaveThePoolAsItWas) {  // T85
  const DevicePtr ptr = AllocAsync(kMiB, DefaultPool(), stream_);
  for (const DeviceCall call :
       {DeviceCall::kMallocFromPoolAsync, DeviceCall::kFreeAsync,
        DeviceCall::kPoolTrimTo, DeviceCall::kStreamSynchronize}) {
    FaultRule rule;
    rule.call = call;
    device().AddFault(rule);
  }
  DevicePtr more = 77;
  EXPECT_EQ(device().MallocFromPoolAsync(&more, kPoolGrowthBytes, DefaultPool(),
                                         stream_),
            Status::kMemoryAllocation);
  EXPECT_EQ(device().FreeAsync(ptr, stream_), Status::kUnknown);
  EXPECT_EQ(device().PoolTrimTo(DefaultPool(), 0), Status::kUnknown);
  EXPECT_EQ(device().StreamSynchronize(stream_), Status::kUnknown);
  EXPECT_EQ(more, 77u);
  EXPECT_EQ(Reserved(DefaultPool()), kPoolGrowthBytes);
  EXPECT_EQ(Get(DefaultPool(), PoolAttribute::kUsedCurrent), kMiB);
  device().ClearFaults();
  FreeAsync(ptr, stream_);
}

TEST_F(SimDevicePoolsTest, ThreadsShareAPool) {
  const auto work = [&](int seed) {
    const Stream stream = NewStream();
    std::vector<DevicePtr> mine;
    for (int i = 0; i < 300; ++i) {
      const auto bytes = static_cast<std::size_t>(1 + (i * 37 + seed) % 5000);
      mine.push_back(AllocAsync(bytes, DefaultPool(), stream));
      if (i % 3 == 0) continue;
      FreeAsync(mine.front(), stream);
      mine.erase(mine.begin());
    }
    for (const DevicePtr ptr : mine) FreeAsync(ptr, stream);
    EXPECT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(device().Leaks().pool_blocks, 0u);
  EXPECT_EQ(Reserved(DefaultPool()), 0u);
}

}  // namespace
}  // namespace strata::sim
