// Which freed block a stream-ordered pool gives to which stream:
// cuda_semantics.md P4, P5 and T49-T53.

#include "strata/tests/testing/pool_fixture.h"

namespace strata {
namespace {

using PoolReuseConformanceTest = PoolFixture;

INSTANTIATE_TEST_SUITE_P(Devices, PoolReuseConformanceTest,
                         ::testing::ValuesIn(AllDevices()), NameOfDevice);

TEST_P(PoolReuseConformanceTest, T49SameStreamGetsTheSameBlockAgain) {
  const MemPool pool = NewPool();
  const Stream stream = NewStream();
  const DevicePtr freed = FreedBlock(pool, stream, true);
  const DevicePtr again = Take(pool, stream);
  EXPECT_EQ(again, freed);
  Give(again, stream);
}

TEST_P(PoolReuseConformanceTest, T49BlocksHoldWhatIsWritten) {
  const MemPool pool = NewPool();
  const Stream stream = NewStream();
  const DevicePtr ptr = Take(pool, stream, kBlockBytes);
  Write(ptr, kBlockBytes, kFirst, stream);
  ExpectWords(ptr, kBlockBytes, kFirst);
  Give(ptr, stream);
}

// P2: the stream that frees need not be the one that allocated.
TEST_P(PoolReuseConformanceTest, T49AnOrderedStreamMayFree) {
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

TEST_P(PoolReuseConformanceTest, T50OtherStreamsGetOtherBlocksWithoutAPolicy) {
  const MemPool pool = NewPool();
  const Stream first = NewStream();
  const Stream second = NewStream();
  const DevicePtr freed = FreedBlock(pool, first, false);
  const DevicePtr other = Take(pool, second);
  EXPECT_NE(other, freed);
  Give(other, second);
}

TEST_P(PoolReuseConformanceTest, T51OpportunisticReuseTakesAFinishedBlock) {
  const MemPool pool = NewPool();
  Set(pool, PoolAttribute::kReuseAllowOpportunistic, 1);
  const Stream first = NewStream();
  const Stream second = NewStream();
  const DevicePtr freed = FreedBlock(pool, first, false);
  const DevicePtr other = Take(pool, second);
  EXPECT_EQ(other, freed);
  Give(other, second);
}

TEST_P(PoolReuseConformanceTest, T51OpportunisticReuseLeavesAPendingBlock) {
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

TEST_P(PoolReuseConformanceTest, T52FollowingEventsTakesAPendingBlock) {
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

TEST_P(PoolReuseConformanceTest, T52EventsAreNotFollowedWithoutThePolicy) {
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
TEST_P(PoolReuseConformanceTest, T52AnEarlierEventIsNotFollowed) {
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
TEST_P(PoolReuseConformanceTest, T52LegacyOrderIsFollowed) {
  const MemPool pool = NewPool();
  Set(pool, PoolAttribute::kReuseFollowEventDependencies, 1);
  const Stream first = NewStream(kStreamDefault);
  const DevicePtr freed = FreedBlock(pool, first, true);
  const DevicePtr other = Take(pool, device().LegacyStream());
  EXPECT_EQ(other, freed);
  Give(other, device().LegacyStream());
}

TEST_P(PoolReuseConformanceTest, T53PinsWaitsThatThePoolInserts) {
  STRATA_REQUIRE(CanHold(), kNeedsPending);
  const MemPool pool = NewPool(kTakenBytes);
  Set(pool, PoolAttribute::kReuseAllowInternalDependencies, 1);
  const Stream first = NewStream();
  const Stream second = NewStream();
  const DevicePtr ptr = Take(pool, first);
  LongWork(first);
  Write(ptr, kBlockBytes, kFirst, first);
  Give(ptr, first);
  DevicePtr other = 0;
  const Status status =
      device().MallocFromPoolAsync(&other, kTakenBytes, pool, second);
  Pin("internal_dependency_reuse", status);
  Pin("internal_dependency_same_block", other == ptr ? 1u : 0u);
  if (sim() != nullptr) {
    ASSERT_EQ(status, Status::kSuccess);
    EXPECT_EQ(other, ptr);
  }
  if (status != Status::kSuccess) return;
  Write(other, kBlockBytes, kSecond, second);
  ASSERT_EQ(device().StreamSynchronize(second), Status::kSuccess);
  const Status first_done = device().StreamQuery(first);
  Pin("internal_dependency_first_stream", first_done);
  if (sim() != nullptr) {
    EXPECT_EQ(first_done, Status::kSuccess);
  }
  ExpectWords(other, kBlockBytes, kSecond);
  Give(other, second);
}

TEST_P(PoolReuseConformanceTest, T53PinsAFullPoolThatMayNotWait) {
  STRATA_REQUIRE(CanHold(), kNeedsPending);
  const MemPool pool = NewPool(kTakenBytes);
  const Stream first = NewStream();
  const Stream second = NewStream();
  FreedBlock(pool, first, true);
  DevicePtr other = 0;
  const Status status =
      device().MallocFromPoolAsync(&other, kTakenBytes, pool, second);
  Pin("full_pool", status);
  if (sim() != nullptr) {
    EXPECT_EQ(status, Status::kMemoryAllocation);
  }
  if (status == Status::kSuccess) Give(other, second);
}

}  // namespace
}  // namespace strata
