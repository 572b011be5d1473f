// Events that come from outside a capture: cuda_semantics.md C6-C8, E9 and T34,
// T35.

#include <atomic>

#include "strata/tests/testing/capture_fixture.h"

namespace strata {
namespace {

class CaptureEventsConformanceTest : public CaptureFixture {
 protected:
  void SetUp() override {
    CaptureFixture::SetUp();
    if (IsSkipped()) return;
    origin = NewStream();
    other = NewStream();
    event = NewEvent();
    ptr = NewMemory(kBlockBytes);
  }

  Stream origin;  // the one that captures
  Stream other;
  Event event;
  DevicePtr ptr = 0;
};

INSTANTIATE_TEST_SUITE_P(Devices, CaptureEventsConformanceTest,
                         ::testing::ValuesIn(AllDevices()), NameOfDevice);

// C7.
TEST_P(CaptureEventsConformanceTest, T34WaitForEarlierWorkIsRefused) {
  ASSERT_EQ(device().EventRecord(event, other, 0), Status::kSuccess);
  Begin(origin);
  EXPECT_EQ(device().StreamWaitEvent(origin, event, 0),
            Status::kStreamCaptureIsolation);
  EXPECT_EQ(StatusOf(origin), CaptureStatus::kInvalidated);
  ExpectEnd(origin, Status::kStreamCaptureInvalidated);
}

// The latest record says where an event belongs.
TEST_P(CaptureEventsConformanceTest, T34EventRecordedAgainOutsideIsOutside) {
  Begin(origin);
  ASSERT_EQ(device().EventRecord(event, origin, 0), Status::kSuccess);
  ASSERT_EQ(device().EventRecord(event, other, 0), Status::kSuccess);
  EXPECT_EQ(device().StreamWaitEvent(origin, event, 0),
            Status::kStreamCaptureIsolation);
  ExpectEnd(origin, Status::kStreamCaptureInvalidated);
  EXPECT_EQ(device().EventSynchronize(event), Status::kSuccess);
}

// E3 says that there is nothing to wait for, C7 that it is not of the capture.
TEST_P(CaptureEventsConformanceTest, RuleC7PinsWaitForANeverRecordedEvent) {
  Begin(origin);
  const Status status = device().StreamWaitEvent(origin, event, 0);
  Pin("wait_for_a_never_recorded_event", status);
  EXPECT_EQ(StatusOf(origin), status == Status::kSuccess
                                  ? CaptureStatus::kActive
                                  : CaptureStatus::kInvalidated);
  Abandon(origin);
}

TEST_P(CaptureEventsConformanceTest, T34ExternalWaitIsANode) {
  ASSERT_EQ(device().EventRecord(event, other, 0), Status::kSuccess);
  Begin(origin);
  EXPECT_EQ(device().StreamWaitEvent(origin, event, kEventExternal),
            Status::kSuccess);
  const GraphNode wait = LastNode(origin);
  Write(ptr, kBlockBytes, kFirst, origin);
  const GraphNode write = LastNode(origin);
  End(origin);
  ExpectPredecessors(write, {wait});
}

// E9: a replay waits for what the event was recorded behind before it.
TEST_P(CaptureEventsConformanceTest, T34ExternalWaitActsAtEachReplay) {
  std::atomic<int>* const done = NewCounter();
  Begin(origin);
  ASSERT_EQ(device().StreamWaitEvent(origin, event, kEventExternal),
            Status::kSuccess);
  Write(ptr, kBlockBytes, kSecond, origin);
  const GraphExec exec = NewExec(End(origin));
  for (int i = 1; i <= 2; ++i) {
    LongWork(other);
    Write(ptr, kBlockBytes, kFirst, other);
    Count(other, done);
    ASSERT_EQ(device().EventRecord(event, other, 0), Status::kSuccess);
    Replay(exec);
    EXPECT_EQ(*done, i);
    ExpectWords(ptr, kBlockBytes, kSecond);
  }
}

// A replay takes the event over from work that is still pending.
TEST_P(CaptureEventsConformanceTest, T34ExternalRecordActsAtEachReplay) {
  STRATA_REQUIRE(CanHold(), kNeedsPending);
  Begin(origin);
  Write(ptr, kBlockBytes, kFirst, origin);
  ASSERT_EQ(device().EventRecord(event, origin, kEventExternal),
            Status::kSuccess);
  const GraphExec exec = NewExec(End(origin));
  for (int i = 0; i < 2; ++i) {
    LongWork(other);
    ASSERT_EQ(device().EventRecord(event, other, 0), Status::kSuccess);
    EXPECT_EQ(device().EventQuery(event), Status::kNotReady);
    Replay(exec);
    EXPECT_EQ(device().EventQuery(event), Status::kSuccess);
    EXPECT_EQ(device().StreamQuery(other), Status::kNotReady);
    ASSERT_EQ(device().StreamSynchronize(other), Status::kSuccess);
  }
}

TEST_P(CaptureEventsConformanceTest, RuleE9ExternalEventsNeedACapture) {
  EXPECT_NE(device().EventRecord(event, origin, kEventExternal),
            Status::kSuccess);
  EXPECT_NE(device().StreamWaitEvent(origin, event, kEventExternal),
            Status::kSuccess);
}

// C6.
TEST_P(CaptureEventsConformanceTest, T35CapturesCannotMerge) {
  for (const CaptureMode mode : kCaptureModes) {
    Begin(origin, mode);
    Begin(other, mode);
    ASSERT_EQ(device().EventRecord(event, other, 0), Status::kSuccess);
    EXPECT_EQ(device().StreamWaitEvent(origin, event, 0),
              Status::kStreamCaptureMerge);
    ExpectEnd(origin, Status::kStreamCaptureInvalidated);
    ExpectEnd(other, Status::kStreamCaptureInvalidated);
  }
}

// C8.
TEST_P(CaptureEventsConformanceTest, RuleC8EventOfAnInvalidatedCapture) {
  Begin(origin);
  ASSERT_EQ(device().EventRecord(event, origin, 0), Status::kSuccess);
  EXPECT_EQ(device().StreamQuery(origin), Status::kStreamCaptureUnsupported);
  EXPECT_EQ(device().StreamWaitEvent(other, event, 0), Status::kInvalidValue);
  EXPECT_EQ(device().StreamWaitEvent(origin, event, 0),
            Status::kStreamCaptureInvalidated);
  EXPECT_EQ(StatusOf(other), CaptureStatus::kNone);
  ExpectEnd(origin, Status::kStreamCaptureInvalidated);
}

}  // namespace
}  // namespace strata
