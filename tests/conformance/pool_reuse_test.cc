// Reuse of freed blocks of a stream-ordered pool by streams: cuda_semantics.md
// P4, P5 and T49-T53.

#include "strata/tests/testing/devices/pool_fixture.h"

namespace strata {
namespace {

class PoolReuseConformanceTest : public PoolFixture {
 protected:
  // Completes the work of `stream` without a wait for it.
  void Finish(const Stream& stream) {
    if (!PollingMakesProgress()) sim()->sim_device(0).StepAll();
    Status status = Status::kNotReady;
    while (status == Status::kNotReady) status = device().StreamQuery(stream);
    EXPECT_EQ(status, Status::kSuccess);
  }

  void ExpectTaken(DevicePtr freed, MemPool pool, const Stream& stream) {
    const DevicePtr taken = Take(pool, stream);
    EXPECT_EQ(taken, freed);
    Give(taken, stream);
  }

  void ExpectLeft(DevicePtr freed, MemPool pool, const Stream& stream) {
    const DevicePtr taken = Take(pool, stream);
    EXPECT_NE(taken, freed);
    Give(taken, stream);
  }
};

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

// P2: the freeing stream may differ from the allocating stream.
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
  const DevicePtr freed = FreedBlock(pool, first, false);
  ExpectLeft(freed, pool, NewStream());
}

// P5: completed work does not matter, however often the host queries.
TEST_P(PoolReuseConformanceTest, T50QueriesAreNoWaits) {
  const MemPool pool = NewPool();
  const Stream first = NewStream();
  const Event event = NewEvent();
  const DevicePtr freed = FreedBlock(pool, first, false);
  ASSERT_EQ(device().EventRecord(event, first, 0), Status::kSuccess);
  Finish(first);
  EXPECT_EQ(device().EventQuery(event), Status::kSuccess);
  ExpectLeft(freed, pool, NewStream());
}

TEST_P(PoolReuseConformanceTest, T50AWaitForAnotherStreamDoesNotCount) {
  const MemPool pool = NewPool();
  const Stream first = NewStream();
  const Stream second = NewStream();
  const DevicePtr freed = FreedBlock(pool, first, false);
  Finish(first);
  ASSERT_EQ(device().StreamSynchronize(second), Status::kSuccess);
  ExpectLeft(freed, pool, second);
}

TEST_P(PoolReuseConformanceTest, T50AWaitForAnEarlierEventDoesNotCount) {
  const MemPool pool = NewPool();
  const Stream first = NewStream();
  const Event event = NewEvent();
  const DevicePtr ptr = Take(pool, first);
  ASSERT_EQ(device().EventRecord(event, first, 0), Status::kSuccess);
  LongWork(first);
  Give(ptr, first);
  ASSERT_EQ(device().EventSynchronize(event), Status::kSuccess);
  ExpectLeft(ptr, pool, NewStream());
}

TEST_P(PoolReuseConformanceTest, T50AWaitForTheStreamCounts) {
  const MemPool pool = NewPool();
  const Stream first = NewStream();
  const DevicePtr freed = FreedBlock(pool, first, true);
  ASSERT_EQ(device().StreamSynchronize(first), Status::kSuccess);
  ExpectTaken(freed, pool, NewStream());
}

TEST_P(PoolReuseConformanceTest, T50AWaitForAnEventCounts) {
  const MemPool pool = NewPool();
  const Stream first = NewStream();
  const Event event = NewEvent();
  const DevicePtr freed = FreedBlock(pool, first, true);
  ASSERT_EQ(device().EventRecord(event, first, 0), Status::kSuccess);
  ASSERT_EQ(device().EventSynchronize(event), Status::kSuccess);
  ExpectTaken(freed, pool, NewStream());
}

TEST_P(PoolReuseConformanceTest, T50AWaitForTheDeviceCounts) {
  const MemPool pool = NewPool();
  const DevicePtr freed = FreedBlock(pool, NewStream(), true);
  ASSERT_EQ(device().Synchronize(), Status::kSuccess);
  ExpectTaken(freed, pool, NewStream());
}

// A wait for a stream that is itself ordered behind the free.
TEST_P(PoolReuseConformanceTest, T50AWaitForALaterStreamCounts) {
  const MemPool pool = NewPool();
  const Stream first = NewStream();
  const Stream second = NewStream();
  const Event event = NewEvent();
  const DevicePtr freed = FreedBlock(pool, first, true);
  ASSERT_EQ(device().EventRecord(event, first, 0), Status::kSuccess);
  ASSERT_EQ(device().StreamWaitEvent(second, event, 0), Status::kSuccess);
  ASSERT_EQ(device().StreamSynchronize(second), Status::kSuccess);
  ExpectTaken(freed, pool, NewStream());
}

TEST_P(PoolReuseConformanceTest, T51OpportunisticReuseTakesAFinishedBlock) {
  const MemPool pool = NewPool();
  Set(pool, PoolAttribute::kReuseAllowOpportunistic, 1);
  const Stream first = NewStream();
  const DevicePtr freed = FreedBlock(pool, first, false);
  Finish(first);
  ExpectTaken(freed, pool, NewStream());
}

TEST_P(PoolReuseConformanceTest, T51OpportunisticReuseLeavesAPendingBlock) {
  STRATA_REQUIRE(CanHold(), kNeedsPending);
  const MemPool pool = NewPool();
  Set(pool, PoolAttribute::kReuseAllowOpportunistic, 1);
  const Stream first = NewStream();
  const Stream second = NewStream();
  const DevicePtr freed = FreedBlock(pool, first, true);
  ExpectLeft(freed, pool, second);
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
  ExpectTaken(freed, pool, second);
}

TEST_P(PoolReuseConformanceTest, T52EventsAreNotFollowedWithoutThePolicy) {
  const MemPool pool = NewPool();
  const Stream first = NewStream();
  const Stream second = NewStream();
  const Event event = NewEvent();
  const DevicePtr freed = FreedBlock(pool, first, true);
  ASSERT_EQ(device().EventRecord(event, first, 0), Status::kSuccess);
  ASSERT_EQ(device().StreamWaitEvent(second, event, 0), Status::kSuccess);
  ExpectLeft(freed, pool, second);
}

// An event recorded before the free proves nothing about it.
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
  ExpectLeft(ptr, pool, second);
}

// M10: whether adjacent blocks freed by a stream are joined before a host wait.
// If so, a stream that follows only the first free gets neither.
TEST_P(PoolReuseConformanceTest, RuleM10PinsNeighboursOfOneStream) {
  STRATA_REQUIRE(CanHold(), kNeedsPending);
  const MemPool pool = NewPool(kTakenBytes);  // the two blocks fill it
  Set(pool, PoolAttribute::kReuseFollowEventDependencies, 1);
  const Stream first = NewStream();
  const Stream second = NewStream();
  const Event event = NewEvent();
  const DevicePtr one = Take(pool, first, kTakenBytes / 2);
  const DevicePtr other = Take(pool, first, kTakenBytes / 2);
  LongWork(
      first);  // otherwise the pool might release everything and grow again
  Give(one, first);
  ASSERT_EQ(device().EventRecord(event, first, 0), Status::kSuccess);
  Give(other, first);
  ASSERT_EQ(device().StreamWaitEvent(second, event, 0), Status::kSuccess);
  DevicePtr ptr = 0;
  Status status =
      device().MallocFromPoolAsync(&ptr, kTakenBytes / 2, pool, second);
  Pin("half_of_neighbours_by_first_free", status);
  if (status == Status::kSuccess) {
    EXPECT_EQ(ptr, one);
    Give(ptr, first);
  } else {
    EXPECT_EQ(status, Status::kMemoryAllocation);
  }
  status = device().MallocFromPoolAsync(&ptr, kTakenBytes, pool, first);
  Pin("all_of_neighbours_in_their_stream", status);
  if (status == Status::kSuccess) Give(ptr, first);
}

// P4: dependencies through the legacy stream count as well.
TEST_P(PoolReuseConformanceTest, T52LegacyOrderIsFollowed) {
  const MemPool pool = NewPool();
  Set(pool, PoolAttribute::kReuseFollowEventDependencies, 1);
  const Stream first = NewStream(kStreamDefault);
  const DevicePtr freed = FreedBlock(pool, first, true);
  ExpectTaken(freed, pool, device().LegacyStream());
}

TEST_P(PoolReuseConformanceTest, T53AFullPoolInsertsAWait) {
  STRATA_REQUIRE(CanHold(), kNeedsPending);
  const MemPool pool = NewPool(kTakenBytes);
  Set(pool, PoolAttribute::kReuseAllowInternalDependencies, 1);
  const Stream first = NewStream();
  const Stream second = NewStream();
  const DevicePtr ptr = Take(pool, first);
  LongWork(first);
  Write(ptr, kBlockBytes, kFirst, first);
  Give(ptr, first);
  const DevicePtr other = Take(pool, second);
  EXPECT_EQ(other, ptr);
  Write(other, kBlockBytes, kSecond, second);
  ASSERT_EQ(device().StreamSynchronize(second), Status::kSuccess);
  EXPECT_EQ(device().StreamQuery(first), Status::kSuccess);
  ExpectWords(other, kBlockBytes, kSecond);
  Give(other, second);
}

TEST_P(PoolReuseConformanceTest, T53AFullPoolThatMayNotWaitIsExhausted) {
  STRATA_REQUIRE(CanHold(), kNeedsPending);
  const MemPool pool = NewPool(kTakenBytes);
  FreedBlock(pool, NewStream(), true);
  DevicePtr other = 77;
  EXPECT_EQ(
      device().MallocFromPoolAsync(&other, kTakenBytes, pool, NewStream()),
      Status::kMemoryAllocation);
  EXPECT_EQ(other, 77u);
}

}  // namespace
}  // namespace strata
