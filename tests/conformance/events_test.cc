// Events: cuda_semantics.md §1.2 and T1-T4, T8.

#include <cstddef>

#include "strata/tests/testing/devices/device_fixture.h"

namespace strata {
namespace {

using EventConformanceTest = DeviceTest;

INSTANTIATE_TEST_SUITE_P(Devices, EventConformanceTest,
                         ::testing::ValuesIn(AllDevices()), NameOfDevice);

TEST_P(EventConformanceTest, T1NeverRecordedEventIsComplete) {
  const Event event = NewEvent();
  EXPECT_EQ(device().EventQuery(event), Status::kSuccess);
  EXPECT_EQ(device().EventSynchronize(event), Status::kSuccess);
}

TEST_P(EventConformanceTest, T1WaitForANeverRecordedEventIsNoWork) {
  const Event event = NewEvent();
  const Stream stream = NewStream();
  EXPECT_EQ(device().StreamWaitEvent(stream, event, 0), Status::kSuccess);
  EXPECT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
}

TEST_P(EventConformanceTest, T2EventIsPendingUntilTheWorkBeforeItIsDone) {
  STRATA_REQUIRE(CanHold(), kNeedsPending);
  const Event event = NewEvent();
  const Stream stream = NewStream();
  LongWork(stream);
  ASSERT_EQ(device().EventRecord(event, stream, 0), Status::kSuccess);
  EXPECT_EQ(device().EventQuery(event), Status::kNotReady);
  EXPECT_EQ(device().EventSynchronize(event), Status::kSuccess);
  EXPECT_EQ(device().EventQuery(event), Status::kSuccess);
}

TEST_P(EventConformanceTest, T2PollingComesToAnEnd) {
  STRATA_REQUIRE(PollingMakesProgress(), "polling makes no progress here");
  const Event event = NewEvent();
  const Stream stream = NewStream();
  LongWork(stream);
  ASSERT_EQ(device().EventRecord(event, stream, 0), Status::kSuccess);
  EXPECT_EQ(PollUntilDone(event), Status::kSuccess);
  EXPECT_EQ(device().StreamQuery(stream), Status::kSuccess);
}

// E1: a record covers the work in the stream, and no later work.
TEST_P(EventConformanceTest, T2LaterWorkLeavesTheEventComplete) {
  const Event event = NewEvent();
  const Stream stream = NewStream();
  LongWork(stream);
  ASSERT_EQ(device().EventRecord(event, stream, 0), Status::kSuccess);
  LongWork(stream);
  ASSERT_EQ(device().EventSynchronize(event), Status::kSuccess);
  EXPECT_EQ(device().EventQuery(event), Status::kSuccess);
  if (CanHold()) {
    EXPECT_EQ(device().StreamQuery(stream), Status::kNotReady);
  }
}

// E2: a query concerns the latest record.
TEST_P(EventConformanceTest, T3QueryIsAboutTheLatestRecord) {
  STRATA_REQUIRE(CanHold(), kNeedsPending);
  const Event event = NewEvent();
  const Stream stream = NewStream();
  ASSERT_EQ(device().EventRecord(event, stream, 0), Status::kSuccess);
  ASSERT_EQ(device().EventSynchronize(event), Status::kSuccess);
  LongWork(stream);
  ASSERT_EQ(device().EventRecord(event, stream, 0), Status::kSuccess);
  EXPECT_EQ(device().EventQuery(event), Status::kNotReady);
}

TEST_P(EventConformanceTest, T3WaitKeepsTheRecordItSaw) {
  STRATA_REQUIRE(CanHold(), kNeedsPending);
  const Event event = NewEvent();
  const Stream recorded = NewStream();
  const Stream waiting = NewStream();
  const DevicePtr ptr = NewMemory(kBlockBytes);
  ASSERT_EQ(device().EventRecord(event, recorded, 0), Status::kSuccess);
  ASSERT_EQ(device().StreamWaitEvent(waiting, event, 0), Status::kSuccess);
  LongWork(recorded);
  ASSERT_EQ(device().EventRecord(event, recorded, 0), Status::kSuccess);
  Write(ptr, kBlockBytes, kFirst, waiting);
  ASSERT_EQ(device().StreamSynchronize(waiting), Status::kSuccess);
  EXPECT_EQ(device().EventQuery(event), Status::kNotReady);
}

TEST_P(EventConformanceTest, T3ReRecordDoesNotCancelAWait) {
  const Event event = NewEvent();
  const Stream recorded = NewStream();
  const Stream waiting = NewStream();
  const Stream other = NewStream();
  const DevicePtr ptr = NewMemory(kBlockBytes);
  LongWork(recorded);
  Write(ptr, kBlockBytes, kFirst, recorded);
  ASSERT_EQ(device().EventRecord(event, recorded, 0), Status::kSuccess);
  ASSERT_EQ(device().StreamWaitEvent(waiting, event, 0), Status::kSuccess);
  ASSERT_EQ(device().EventRecord(event, other, 0), Status::kSuccess);
  Write(ptr, kBlockBytes, kSecond, waiting);
  ASSERT_EQ(device().StreamSynchronize(waiting), Status::kSuccess);
  EXPECT_EQ(device().StreamQuery(recorded), Status::kSuccess);
  ExpectWords(ptr, kBlockBytes, kSecond);
}

TEST_P(EventConformanceTest, T4RecordTakesAnEventOfTheStreamsDevice) {
  STRATA_REQUIRE(HasTwoDevices(), kNeedsTwoDevices);
  const Event event = NewEvent(1);
  const Stream stream = NewStream(kStreamNonBlocking, 0);
  EXPECT_EQ(device(0).EventRecord(event, stream, 0),
            Status::kInvalidResourceHandle);
}

// E4: unlike a record, a wait accepts an event of any device.
TEST_P(EventConformanceTest, T4WaitTakesAnEventOfAnyDevice) {
  STRATA_REQUIRE(HasTwoDevices(), kNeedsTwoDevices);
  const Event event = NewEvent(1);
  const Stream stream = NewStream(kStreamNonBlocking, 0);
  EXPECT_EQ(device(0).StreamWaitEvent(stream, event, 0), Status::kSuccess);
}

TEST_P(EventConformanceTest, T8PendingEventCanBeDestroyed) {
  Event event;
  ASSERT_EQ(device().EventCreate(&event, kEventDisableTiming),
            Status::kSuccess);
  const Stream stream = NewStream();
  LongWork(stream);
  ASSERT_EQ(device().EventRecord(event, stream, 0), Status::kSuccess);
  EXPECT_EQ(device().EventDestroy(event), Status::kSuccess);
  EXPECT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
}

TEST_P(EventConformanceTest, T8WaitOutlivesItsEvent) {
  Event event;
  ASSERT_EQ(device().EventCreate(&event, kEventDisableTiming),
            Status::kSuccess);
  const Stream recorded = NewStream();
  const Stream waiting = NewStream();
  const DevicePtr ptr = NewMemory(kBlockBytes);
  LongWork(recorded);
  Write(ptr, kBlockBytes, kFirst, recorded);
  ASSERT_EQ(device().EventRecord(event, recorded, 0), Status::kSuccess);
  ASSERT_EQ(device().StreamWaitEvent(waiting, event, 0), Status::kSuccess);
  ASSERT_EQ(device().EventDestroy(event), Status::kSuccess);
  Write(ptr, kBlockBytes, kSecond, waiting);
  ASSERT_EQ(device().StreamSynchronize(waiting), Status::kSuccess);
  ExpectWords(ptr, kBlockBytes, kSecond);
}

TEST_P(EventConformanceTest, T8DestroyedEventIsRefused) {
  STRATA_REQUIRE(sim() != nullptr, kNeedsSimulation);
  Event event;
  ASSERT_EQ(device().EventCreate(&event, kEventDisableTiming),
            Status::kSuccess);
  ASSERT_EQ(device().EventDestroy(event), Status::kSuccess);
  EXPECT_EQ(device().EventQuery(event), Status::kInvalidResourceHandle);
}

// E8: a record on the legacy stream is work of the legacy stream.
TEST_P(EventConformanceTest, RuleE8LegacyRecordCoversBlockingStreams) {
  const Event event = NewEvent();
  const Stream stream = NewStream(kStreamDefault);
  LongWork(stream);
  ASSERT_EQ(device().EventRecord(event, device().LegacyStream(), 0),
            Status::kSuccess);
  if (CanHold()) {
    EXPECT_EQ(device().EventQuery(event), Status::kNotReady);
  }
  ASSERT_EQ(device().EventSynchronize(event), Status::kSuccess);
  EXPECT_EQ(device().StreamQuery(stream), Status::kSuccess);
}

TEST_P(EventConformanceTest, RuleE8LegacyRecordLeavesOutNonBlockingStreams) {
  STRATA_REQUIRE(CanHold(), kNeedsPending);
  const Event event = NewEvent();
  const Stream stream = NewStream(kStreamNonBlocking);
  LongWork(stream);
  ASSERT_EQ(device().EventRecord(event, device().LegacyStream(), 0),
            Status::kSuccess);
  ASSERT_EQ(device().EventSynchronize(event), Status::kSuccess);
  EXPECT_EQ(device().StreamQuery(stream), Status::kNotReady);
}

// E6: an event recorded in a destroyed stream can still be queried.
TEST_P(EventConformanceTest, RuleE6EventOutlivesItsStream) {
  const Event event = NewEvent();
  Stream stream;
  ASSERT_EQ(device().StreamCreate(&stream, kStreamNonBlocking),
            Status::kSuccess);
  ASSERT_EQ(device().EventRecord(event, stream, 0), Status::kSuccess);
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  ASSERT_EQ(device().StreamDestroy(stream), Status::kSuccess);
  EXPECT_EQ(device().EventQuery(event), Status::kSuccess);
  const Stream waiting = NewStream();
  EXPECT_EQ(device().StreamWaitEvent(waiting, event, 0), Status::kSuccess);
}

// E7: sharing between processes excludes timing.
TEST_P(EventConformanceTest, RuleE7InterprocessEventsHaveNoTiming) {
  Event event;
  EXPECT_EQ(device().EventCreate(&event, kEventInterprocess),
            Status::kInvalidValue);
}

}  // namespace
}  // namespace strata
