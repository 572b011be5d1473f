// Stream-ordered pools: cuda_semantics.md §3 and T49-T58.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "strata/tests/testing/device_fixture.h"

namespace strata {
namespace {

constexpr std::uint64_t kKeepAll = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t kPoolBlockBytes = std::size_t{32} << 20;

class PoolConformanceTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    if (!device().caps().mem_pools) GTEST_SKIP() << "no memory pools";
  }

  // A pool that keeps its memory and never gives one stream's blocks to
  // another. `max_bytes` 0: no limit.
  MemPool NewPool(std::size_t max_bytes = 0) {
    MemPool pool;
    EXPECT_EQ(device().PoolCreate(&pool, MemProperties{}, max_bytes),
              Status::kSuccess);
    AtEnd([this, pool] {
      EXPECT_EQ(device().PoolDestroy(pool), Status::kSuccess);
    });
    Set(pool, PoolAttribute::kReleaseThreshold, kKeepAll);
    Set(pool, PoolAttribute::kReuseFollowEventDependencies, 0);
    Set(pool, PoolAttribute::kReuseAllowOpportunistic, 0);
    Set(pool, PoolAttribute::kReuseAllowInternalDependencies, 0);
    return pool;
  }

  void Set(MemPool pool, PoolAttribute attribute, std::uint64_t value) {
    EXPECT_EQ(device().PoolSetAttribute(pool, attribute, value),
              Status::kSuccess);
  }

  std::uint64_t Get(MemPool pool, PoolAttribute attribute) {
    std::uint64_t value = 0;
    EXPECT_EQ(device().PoolGetAttribute(pool, attribute, &value),
              Status::kSuccess);
    return value;
  }

  DevicePtr Take(MemPool pool, const Stream& stream,
                 std::size_t bytes = kPoolBlockBytes) {
    DevicePtr ptr = 0;
    EXPECT_EQ(device().MallocFromPoolAsync(&ptr, bytes, pool, stream),
              Status::kSuccess);
    return ptr;
  }

  void Give(DevicePtr ptr, const Stream& stream) {
    EXPECT_EQ(device().FreeAsync(ptr, stream), Status::kSuccess);
  }

  // A block that `stream` has freed, behind long work if `busy`.
  DevicePtr FreedBlock(MemPool pool, const Stream& stream, bool busy) {
    const DevicePtr ptr = Take(pool, stream);
    if (busy) LongWork(stream);
    Give(ptr, stream);
    if (!busy) {
      EXPECT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
    }
    return ptr;
  }
};

INSTANTIATE_TEST_SUITE_P(Devices, PoolConformanceTest,
                         ::testing::ValuesIn(AllDevices()), NameOfDevice);

TEST_P(PoolConformanceTest, T49SameStreamGetsTheSameBlockAgain) {
  const MemPool pool = NewPool();
  const Stream stream = NewStream();
  const DevicePtr freed = FreedBlock(pool, stream, true);
  const DevicePtr again = Take(pool, stream);
  EXPECT_EQ(again, freed);
  Give(again, stream);
}

TEST_P(PoolConformanceTest, T49BlocksHoldWhatIsWritten) {
  const MemPool pool = NewPool();
  const Stream stream = NewStream();
  const DevicePtr ptr = Take(pool, stream, kBlockBytes);
  Write(ptr, kBlockBytes, kFirst, stream);
  ExpectWords(ptr, kBlockBytes, kFirst);
  Give(ptr, stream);
}

// P2: the stream that frees need not be the one that allocated.
TEST_P(PoolConformanceTest, T49AnOrderedStreamMayFree) {
  const MemPool pool = NewPool();
  const Stream owner = NewStream();
  const Stream other = NewStream();
  const Event event = NewEvent();
  const DevicePtr ptr = Take(pool, owner);
  Write(ptr, kBlockBytes, kFirst, owner);
  ASSERT_EQ(device().EventRecord(event, owner, 0), Status::kSuccess);
  ASSERT_EQ(device().StreamWaitEvent(other, event, 0), Status::kSuccess);
  Give(ptr, other);
  const DevicePtr again = Take(pool, other);
  EXPECT_EQ(again, ptr);
  Give(again, other);
}

TEST_P(PoolConformanceTest, T50OtherStreamsGetOtherBlocksWithoutAPolicy) {
  const MemPool pool = NewPool();
  const Stream first = NewStream();
  const Stream second = NewStream();
  const DevicePtr freed = FreedBlock(pool, first, false);
  const DevicePtr other = Take(pool, second);
  EXPECT_NE(other, freed);
  Give(other, second);
}

TEST_P(PoolConformanceTest, T51OpportunisticReuseTakesAFinishedBlock) {
  const MemPool pool = NewPool();
  Set(pool, PoolAttribute::kReuseAllowOpportunistic, 1);
  const Stream first = NewStream();
  const Stream second = NewStream();
  const DevicePtr freed = FreedBlock(pool, first, false);
  const DevicePtr other = Take(pool, second);
  EXPECT_EQ(other, freed);
  Give(other, second);
}

TEST_P(PoolConformanceTest, T51OpportunisticReuseLeavesAPendingBlock) {
  STRATA_REQUIRE(CanHold(), kNeedsPending);
  const MemPool pool = NewPool();
  Set(pool, PoolAttribute::kReuseAllowOpportunistic, 1);
  const Stream first = NewStream();
  const Stream second = NewStream();
  const DevicePtr freed = FreedBlock(pool, first, true);
  const DevicePtr other = Take(pool, second);
  EXPECT_NE(other, freed);
  Give(other, second);
}

TEST_P(PoolConformanceTest, T52FollowingEventsTakesAPendingBlock) {
  const MemPool pool = NewPool();
  Set(pool, PoolAttribute::kReuseFollowEventDependencies, 1);
  const Stream first = NewStream();
  const Stream second = NewStream();
  const Event event = NewEvent();
  const DevicePtr freed = FreedBlock(pool, first, true);
  ASSERT_EQ(device().EventRecord(event, first, 0), Status::kSuccess);
  ASSERT_EQ(device().StreamWaitEvent(second, event, 0), Status::kSuccess);
  const DevicePtr other = Take(pool, second);
  EXPECT_EQ(other, freed);
  Give(other, second);
}

TEST_P(PoolConformanceTest, T52EventsAreNotFollowedWithoutThePolicy) {
  const MemPool pool = NewPool();
  const Stream first = NewStream();
  const Stream second = NewStream();
  const Event event = NewEvent();
  const DevicePtr freed = FreedBlock(pool, first, true);
  ASSERT_EQ(device().EventRecord(event, first, 0), Status::kSuccess);
  ASSERT_EQ(device().StreamWaitEvent(second, event, 0), Status::kSuccess);
  const DevicePtr other = Take(pool, second);
  EXPECT_NE(other, freed);
  Give(other, second);
}

// An event that was recorded before the free proves nothing about it.
TEST_P(PoolConformanceTest, T52AnEarlierEventIsNotFollowed) {
  const MemPool pool = NewPool();
  Set(pool, PoolAttribute::kReuseFollowEventDependencies, 1);
  const Stream first = NewStream();
  const Stream second = NewStream();
  const Event event = NewEvent();
  const DevicePtr ptr = Take(pool, first);
  ASSERT_EQ(device().EventRecord(event, first, 0), Status::kSuccess);
  LongWork(first);
  Give(ptr, first);
  ASSERT_EQ(device().StreamWaitEvent(second, event, 0), Status::kSuccess);
  const DevicePtr other = Take(pool, second);
  EXPECT_NE(other, ptr);
  Give(other, second);
}

// P4: dependencies through the legacy stream count as well.
TEST_P(PoolConformanceTest, T52LegacyOrderIsFollowed) {
  const MemPool pool = NewPool();
  Set(pool, PoolAttribute::kReuseFollowEventDependencies, 1);
  const Stream first = NewStream(kStreamDefault);
  const DevicePtr freed = FreedBlock(pool, first, true);
  const DevicePtr other = Take(pool, device().LegacyStream());
  EXPECT_EQ(other, freed);
  Give(other, device().LegacyStream());
}

TEST_P(PoolConformanceTest, T53PinsWaitsThatThePoolInserts) {
  STRATA_REQUIRE(CanHold(), kNeedsPending);
  const MemPool pool = NewPool(kPoolBlockBytes);
  Set(pool, PoolAttribute::kReuseAllowInternalDependencies, 1);
  const Stream first = NewStream();
  const Stream second = NewStream();
  const DevicePtr ptr = Take(pool, first);
  LongWork(first);
  Write(ptr, kBlockBytes, kFirst, first);
  Give(ptr, first);
  DevicePtr other = 0;
  const Status status =
      device().MallocFromPoolAsync(&other, kPoolBlockBytes, pool, second);
  Pin("internal_dependency_reuse", status);
  Pin("internal_dependency_same_block", other == ptr ? 1u : 0u);
  if (sim() != nullptr) {
    ASSERT_EQ(status, Status::kSuccess);
    EXPECT_EQ(other, ptr);
  }
  if (status != Status::kSuccess) return;
  Write(other, kBlockBytes, kSecond, second);
  ExpectWords(other, kBlockBytes, kSecond);
  Give(other, second);
}

TEST_P(PoolConformanceTest, T53PinsAFullPoolThatMayNotWait) {
  STRATA_REQUIRE(CanHold(), kNeedsPending);
  const MemPool pool = NewPool(kPoolBlockBytes);
  const Stream first = NewStream();
  const Stream second = NewStream();
  FreedBlock(pool, first, true);
  DevicePtr other = 0;
  const Status status =
      device().MallocFromPoolAsync(&other, kPoolBlockBytes, pool, second);
  Pin("full_pool", status);
  if (sim() != nullptr) {
    EXPECT_EQ(status, Status::kMemoryAllocation);
  }
  if (status == Status::kSuccess) Give(other, second);
}

TEST_P(PoolConformanceTest, T54ZeroThresholdGivesMemoryBackAtASynchronize) {
  const MemPool pool = NewPool();
  Set(pool, PoolAttribute::kReleaseThreshold, 0);
  const Stream stream = NewStream();
  Give(Take(pool, stream), stream);
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  EXPECT_EQ(Get(pool, PoolAttribute::kReservedCurrent), 0u);
}

TEST_P(PoolConformanceTest, T54HighThresholdKeepsMemoryAtASynchronize) {
  const MemPool pool = NewPool();
  const Stream stream = NewStream();
  Give(Take(pool, stream), stream);
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  EXPECT_GE(Get(pool, PoolAttribute::kReservedCurrent), kPoolBlockBytes);
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

// P8: what is to be kept is kept.
TEST_P(PoolConformanceTest, T54TrimKeepsWhatItIsTold) {
  const MemPool pool = NewPool();
  const Stream stream = NewStream();
  const DevicePtr first = Take(pool, stream);
  const DevicePtr second = Take(pool, stream);
  Give(first, stream);
  Give(second, stream);
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  ASSERT_EQ(device().PoolTrimTo(pool, kPoolBlockBytes), Status::kSuccess);
  EXPECT_GE(Get(pool, PoolAttribute::kReservedCurrent), kPoolBlockBytes);
}

TEST_P(PoolConformanceTest, T54PinsWhatAnAllocationReserves) {
  const MemPool pool = NewPool();
  const Stream stream = NewStream();
  const DevicePtr ptr = Take(pool, stream, 512);
  Pin("pool_growth_bytes", Get(pool, PoolAttribute::kReservedCurrent));
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
  EXPECT_GE(Get(pool, PoolAttribute::kUsedHigh), kPoolBlockBytes);
  Set(pool, PoolAttribute::kUsedHigh, 0);
  EXPECT_EQ(Get(pool, PoolAttribute::kUsedHigh),
            Get(pool, PoolAttribute::kUsedCurrent));
}

// P7: the present values are not to be written at all.
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
  EXPECT_EQ(Get(pool, PoolAttribute::kUsedCurrent), 0u);
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

TEST_P(PoolConformanceTest, RuleP3PinsBlocksOfNoBytes) {
  const MemPool pool = NewPool();
  const Stream stream = NewStream();
  DevicePtr ptr = 0;
  const Status status = device().MallocFromPoolAsync(&ptr, 0, pool, stream);
  Pin("malloc_async_no_bytes", status);
  Pin("malloc_async_no_bytes_is_null", ptr == 0 ? 1u : 0u);
  if (status == Status::kSuccess && ptr != 0) Give(ptr, stream);
}

TEST_P(PoolConformanceTest, RuleP2PinsFreeingNoMemory) {
  const Stream stream = NewStream();
  Pin("free_async_null", device().FreeAsync(0, stream));
  const Status status = device().FreeAsync(DevicePtr{1} << 20, stream);
  Pin("free_async_invalid", status);
  EXPECT_NE(status, Status::kSuccess);
}

TEST_P(PoolConformanceTest, RuleP10OwnerKeepsItsAccess) {
  const MemPool pool = NewPool();
  const AccessDescriptor none{{Location::Kind::kDevice, 0}, Access::kNone};
  EXPECT_EQ(device().PoolSetAccess(pool, &none, 1), Status::kInvalidValue);
}

TEST_P(PoolConformanceTest, RuleP10PeersReachBlocksAfterSetAccess) {
  STRATA_REQUIRE(HasTwoDevices(), kNeedsTwoDevices);
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

// Whether memory that a pool keeps is found for who else needs it.
TEST_P(PoolConformanceTest, RuleP12PinsAllocationsBesideAFullPool) {
  const MemPool pool = NewPool();
  const Stream stream = NewStream();
  const std::size_t half = FreeBytes() / 2 / kBlockBytes * kBlockBytes;
  Give(Take(pool, stream, half), stream);
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  DevicePtr ptr = 0;
  const Status status = device().MemAlloc(&ptr, half + half / 2);
  Pin("mem_alloc_beside_a_full_pool", status);
  if (status == Status::kSuccess) {
    EXPECT_EQ(device().MemFree(ptr), Status::kSuccess);
  }
}

}  // namespace
}  // namespace strata
