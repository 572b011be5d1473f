// Stream-ordered pools: cuda_semantics.md §3 and T54-T58.

#include <cstddef>
#include <cstdint>

#include "strata/tests/testing/devices/pool_fixture.h"

namespace strata {
namespace {

using PoolConformanceTest = PoolFixture;

INSTANTIATE_TEST_SUITE_P(Devices, PoolConformanceTest,
                         ::testing::ValuesIn(AllDevices()), NameOfDevice);

TEST_P(PoolConformanceTest, T54ZeroThresholdGivesMemoryBackAtASynchronize) {
  const MemPool pool = NewPool();
  Set(pool, PoolAttribute::kReleaseThreshold, 0);
  const Stream stream = NewStream();
  Give(Take(pool, stream), stream);
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  EXPECT_EQ(Get(pool, PoolAttribute::kReservedCurrent), 0u);
}

// P5, P6: completed work is not enough.
TEST_P(PoolConformanceTest, T54ZeroThresholdKeepsWhatNobodyHasWaitedFor) {
  const MemPool pool = NewPool();
  Set(pool, PoolAttribute::kReleaseThreshold, 0);
  const Stream stream = NewStream();
  FreedBlock(pool, stream, false);
  ASSERT_EQ(device().StreamSynchronize(NewStream()), Status::kSuccess);
  EXPECT_EQ(Get(pool, PoolAttribute::kReservedCurrent), kTakenBytes);
}

TEST_P(PoolConformanceTest,
       T54ZeroThresholdGivesMemoryBackAtAnEventSynchronize) {
  const MemPool pool = NewPool();
  Set(pool, PoolAttribute::kReleaseThreshold, 0);
  const Stream stream = NewStream();
  const Event event = NewEvent();
  FreedBlock(pool, stream, true);
  ASSERT_EQ(device().EventRecord(event, stream, 0), Status::kSuccess);
  ASSERT_EQ(device().EventSynchronize(event), Status::kSuccess);
  EXPECT_EQ(Get(pool, PoolAttribute::kReservedCurrent), 0u);
}

TEST_P(PoolConformanceTest, T54HighThresholdKeepsMemoryAtASynchronize) {
  const MemPool pool = NewPool();
  const Stream stream = NewStream();
  Give(Take(pool, stream), stream);
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  EXPECT_GE(Get(pool, PoolAttribute::kReservedCurrent), kTakenBytes);
}

TEST_P(PoolConformanceTest, T54TrimEmptiesAnIdlePool) {
  const MemPool pool = NewPool();
  const Stream stream = NewStream();
  const std::size_t before = FreeBytes();
  Give(Take(pool, stream, kLargeBytes), stream);
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  ASSERT_EQ(device().PoolTrimTo(pool, 0), Status::kSuccess);
  EXPECT_EQ(Get(pool, PoolAttribute::kReservedCurrent), 0u);
  ExpectFreeBytes(before);
}

// P8: trim keeps the requested bytes.
TEST_P(PoolConformanceTest, T54TrimKeepsWhatItIsTold) {
  const MemPool pool = NewPool();
  const Stream stream = NewStream();
  const DevicePtr first = Take(pool, stream);
  const DevicePtr second = Take(pool, stream);
  Give(first, stream);
  Give(second, stream);
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  ASSERT_EQ(device().PoolTrimTo(pool, kTakenBytes), Status::kSuccess);
  EXPECT_GE(Get(pool, PoolAttribute::kReservedCurrent), kTakenBytes);
}

TEST_P(PoolConformanceTest, T54PoolsGrowInLargeSteps) {
  const MemPool pool = NewPool();
  const Stream stream = NewStream();
  const DevicePtr ptr = Take(pool, stream, 512);
  EXPECT_EQ(Get(pool, PoolAttribute::kReservedCurrent), 32u << 20);
  EXPECT_GE(Get(pool, PoolAttribute::kUsedCurrent), 512u);
  Give(ptr, stream);
}

TEST_P(PoolConformanceTest, T55HighMarksCanOnlyBeReset) {
  const MemPool pool = NewPool();
  const Stream stream = NewStream();
  Give(Take(pool, stream), stream);
  EXPECT_EQ(device().PoolSetAttribute(pool, PoolAttribute::kUsedHigh, 1),
            Status::kInvalidValue);
  EXPECT_EQ(device().PoolSetAttribute(pool, PoolAttribute::kReservedHigh, 1),
            Status::kInvalidValue);
  EXPECT_GE(Get(pool, PoolAttribute::kUsedHigh), kTakenBytes);
  Set(pool, PoolAttribute::kUsedHigh, 0);
  EXPECT_EQ(Get(pool, PoolAttribute::kUsedHigh),
            Get(pool, PoolAttribute::kUsedCurrent));
}

// P7: the current values are read-only.
TEST_P(PoolConformanceTest, T55CurrentValuesCannotBeSet) {
  const MemPool pool = NewPool();
  EXPECT_EQ(device().PoolSetAttribute(pool, PoolAttribute::kUsedCurrent, 0),
            Status::kInvalidValue);
  EXPECT_EQ(device().PoolSetAttribute(pool, PoolAttribute::kReservedCurrent, 0),
            Status::kInvalidValue);
}

TEST_P(PoolConformanceTest, T56DefaultPoolCannotBeDestroyed) {
  MemPool pool;
  ASSERT_EQ(device().DefaultMemPool(&pool), Status::kSuccess);
  EXPECT_EQ(device().PoolDestroy(pool), Status::kInvalidValue);
}

TEST_P(PoolConformanceTest, T56DestroyedPoolLivesForItsBlocks) {
  MemPool pool;
  ASSERT_EQ(device().PoolCreate(&pool, MemProperties{}, 0), Status::kSuccess);
  const Stream stream = NewStream();
  const DevicePtr ptr = Take(pool, stream);
  EXPECT_EQ(device().PoolDestroy(pool), Status::kSuccess);
  Write(ptr, kBlockBytes, kFirst, stream);
  ExpectWords(ptr, kBlockBytes, kFirst);
  EXPECT_EQ(device().FreeAsync(ptr, stream), Status::kSuccess);
}

TEST_P(PoolConformanceTest, T56DestroyingTwiceIsRefused) {
  MemPool pool;
  ASSERT_EQ(device().PoolCreate(&pool, MemProperties{}, 0), Status::kSuccess);
  ASSERT_EQ(device().PoolDestroy(pool), Status::kSuccess);
  EXPECT_EQ(device().PoolDestroy(pool), Status::kInvalidValue);
}

TEST_P(PoolConformanceTest, T57BlocksCanBeFreedAtOnce) {
  const MemPool pool = NewPool();
  const Stream stream = NewStream();
  const DevicePtr ptr = Take(pool, stream);
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  EXPECT_EQ(device().MemFree(ptr), Status::kSuccess);
  // A driver (580.159) counts it as used while the pool exists.
  if (sim() != nullptr) {
    EXPECT_EQ(Get(pool, PoolAttribute::kUsedCurrent), 0u);
  }
}

TEST_P(PoolConformanceTest, T57ABlockFreedAtOnceServesTheNextAllocation) {
  const MemPool pool = NewPool();
  const Stream stream = NewStream();
  const DevicePtr ptr = Take(pool, stream);
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  ASSERT_EQ(device().MemFree(ptr), Status::kSuccess);
  ASSERT_EQ(device().Synchronize(), Status::kSuccess);
  const DevicePtr again = Take(pool, stream);
  EXPECT_EQ(again, ptr);
  Give(again, stream);
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  ASSERT_EQ(device().PoolTrimTo(pool, 0), Status::kSuccess);
  EXPECT_EQ(Get(pool, PoolAttribute::kReservedCurrent), 0u);
}

TEST_P(PoolConformanceTest, T57ABlockFreedAtOnceCannotBeFreedAgain) {
  const MemPool pool = NewPool();
  const Stream stream = NewStream();
  const DevicePtr ptr = Take(pool, stream);
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  ASSERT_EQ(device().MemFree(ptr), Status::kSuccess);
  EXPECT_EQ(device().MemFree(ptr), Status::kInvalidValue);
  EXPECT_EQ(device().FreeAsync(ptr, stream), Status::kInvalidValue);
}

TEST_P(PoolConformanceTest, T58MemoryOfNoPoolCanBeFreedInAStream) {
  const Stream stream = NewStream();
  const std::size_t before = FreeBytes();
  DevicePtr ptr = 0;
  ASSERT_EQ(device().MemAlloc(&ptr, kLargeBytes), Status::kSuccess);
  LongWork(stream);
  Write(ptr, kBlockBytes, kFirst, stream);
  EXPECT_EQ(device().FreeAsync(ptr, stream), Status::kSuccess);
  ASSERT_EQ(device().Synchronize(), Status::kSuccess);
  ExpectFreeBytes(before);
}

TEST_P(PoolConformanceTest, RuleP3BadArgumentsAreRefused) {
  const MemPool pool = NewPool();
  const Stream stream = NewStream();
  EXPECT_EQ(device().MallocFromPoolAsync(nullptr, 512, pool, stream),
            Status::kInvalidValue);
  DevicePtr ptr = 77;
  EXPECT_EQ(
      device().MallocFromPoolAsync(&ptr, std::size_t{1} << 60, pool, stream),
      Status::kMemoryAllocation);
  EXPECT_EQ(ptr, 77u);
}

TEST_P(PoolConformanceTest, RuleP3DestroyedStreamIsRefused) {
  STRATA_REQUIRE(sim() != nullptr, kNeedsSimulation);
  const MemPool pool = NewPool();
  Stream stream;
  ASSERT_EQ(device().StreamCreate(&stream, kStreamNonBlocking),
            Status::kSuccess);
  ASSERT_EQ(device().StreamDestroy(stream), Status::kSuccess);
  DevicePtr ptr = 0;
  EXPECT_EQ(device().MallocFromPoolAsync(&ptr, 512, pool, stream),
            Status::kInvalidResourceHandle);
}

TEST_P(PoolConformanceTest, RuleP3NoBytesAreANullAddress) {
  const MemPool pool = NewPool();
  DevicePtr ptr = 77;
  EXPECT_EQ(device().MallocFromPoolAsync(&ptr, 0, pool, NewStream()),
            Status::kSuccess);
  EXPECT_EQ(ptr, 0u);
}

TEST_P(PoolConformanceTest, RuleP2NullCanBeFreedInAStream) {
  EXPECT_EQ(device().FreeAsync(0, NewStream()), Status::kSuccess);
}

TEST_P(PoolConformanceTest, RuleP2WhatIsNoBlockCannotBeFreedInAStream) {
  const MemPool pool = NewPool();
  const Stream stream = NewStream();
  const DevicePtr block = Take(pool, stream);
  const DevicePtr memory = NewMemory(kBlockBytes);
  for (const DevicePtr ptr :
       {DevicePtr{0x1234000}, block + 512, memory + 512}) {
    EXPECT_EQ(device().FreeAsync(ptr, stream), Status::kInvalidValue);
  }
  Give(block, stream);
}

TEST_P(PoolConformanceTest, RuleP10TheOwnersAccessCannotBeRevoked) {
  const MemPool pool = NewPool();
  const AccessDescriptor none{{Location::Kind::kDevice, 0}, Access::kNone};
  EXPECT_EQ(device().PoolSetAccess(pool, &none, 1), Status::kInvalidDevice);
}

TEST_P(PoolConformanceTest, RuleP10PeersReachBlocksAfterSetAccess) {
  STRATA_REQUIRE(HasPeers(), kNeedsPeers);
  const MemPool pool = NewPool();
  const Stream owner = NewStream(kStreamNonBlocking, 0);
  const Stream peer = NewStream(kStreamNonBlocking, 1);
  const DevicePtr ptr = Take(pool, owner, kBlockBytes);
  ASSERT_EQ(device(0).StreamSynchronize(owner), Status::kSuccess);
  const AccessDescriptor both{{Location::Kind::kDevice, 1}, Access::kReadWrite};
  ASSERT_EQ(device(0).PoolSetAccess(pool, &both, 1), Status::kSuccess);
  Write(ptr, kBlockBytes, kFirst, peer);
  ASSERT_EQ(device(1).StreamSynchronize(peer), Status::kSuccess);
  ExpectWords(ptr, kBlockBytes, kFirst);
  Give(ptr, owner);
}

TEST_P(PoolConformanceTest, RuleP11ExportNeedsAShareType) {
  const MemPool pool = NewPool();
  Shareable shareable;
  EXPECT_EQ(device().PoolExport(pool, ShareType::kPosixFd, &shareable),
            Status::kInvalidValue);
}

// Other users can allocate the idle memory of a pool.
TEST_P(PoolConformanceTest, RuleP12AllocationsTakeWhatPoolsKeep) {
  const MemPool pool = NewPool();
  const Stream stream = NewStream();
  const std::size_t half = FreeBytes() / 2 / kBlockBytes * kBlockBytes;
  Give(Take(pool, stream, half), stream);
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  DevicePtr ptr = 0;
  ASSERT_EQ(device().MemAlloc(&ptr, half + half / 2), Status::kSuccess);
  EXPECT_EQ(device().MemFree(ptr), Status::kSuccess);
}

}  // namespace
}  // namespace strata
