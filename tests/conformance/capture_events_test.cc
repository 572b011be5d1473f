// Events from outside a capture: cuda_semantics.md C6-C8, E9 and T34, T35.

#include <atomic>

#include "strata/tests/testing/devices/capture_fixture.h"

namespace strata {
namespace {

class CaptureEventsConformanceTest : public CaptureFixture {
 protected:
  void SetUp() override {
    CaptureFixture::SetUp();
    if (IsSkipped()) return;
    origin_ = NewStream();
    other_ = NewStream();
    event_ = NewEvent();
    ptr_ = NewMemory(kBlockBytes);
  }

  Stream origin_;  // the capturing stream
  Stream other_;
  Event event_;
  DevicePtr ptr_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Devices, CaptureEventsConformanceTest,
                         ::testing::ValuesIn(AllDevices()), NameOfDevice);

// C7: earlier work outside.
TEST_P(CaptureEventsConformanceTest, T34WaitForEarlierWorkIsRefused) {
  ASSERT_EQ(device().EventRecord(event_, other_, 0), Status::kSuccess);
  Begin(origin_);
  EXPECT_EQ(device().StreamWaitEvent(origin_, event_, 0),
            Status::kStreamCaptureIsolation);
  EXPECT_EQ(StatusOf(origin_), CaptureStatus::kInvalidated);
  ExpectEnd(origin_, Status::kStreamCaptureInvalidated);
}

// The latest record decides whether an event belongs to a capture.
TEST_P(CaptureEventsConformanceTest, T34EventRecordedAgainOutsideIsOutside) {
  Begin(origin_);
  ASSERT_EQ(device().EventRecord(event_, origin_, 0), Status::kSuccess);
  ASSERT_EQ(device().EventRecord(event_, other_, 0), Status::kSuccess);
  EXPECT_EQ(device().StreamWaitEvent(origin_, event_, 0),
            Status::kStreamCaptureIsolation);
  ExpectEnd(origin_, Status::kStreamCaptureInvalidated);
  EXPECT_EQ(device().EventSynchronize(event_), Status::kSuccess);
}

// E3, not C7: there is no work to wait for.
TEST_P(CaptureEventsConformanceTest, RuleE3NeverRecordedEventIsNoViolation) {
  Begin(origin_);
  EXPECT_EQ(device().StreamWaitEvent(origin_, event_, 0), Status::kSuccess);
  EXPECT_EQ(StatusOf(origin_), CaptureStatus::kActive);
  End(origin_);
}

TEST_P(CaptureEventsConformanceTest, T34ExternalWaitIsANode) {
  ASSERT_EQ(device().EventRecord(event_, other_, 0), Status::kSuccess);
  Begin(origin_);
  EXPECT_EQ(device().StreamWaitEvent(origin_, event_, kEventExternal),
            Status::kSuccess);
  const GraphNode wait = LastNode(origin_);
  Write(ptr_, kBlockBytes, kFirst, origin_);
  const GraphNode write = LastNode(origin_);
  End(origin_);
  ExpectPredecessors(write, {wait});
}

// E9: a replay waits for the last record of the event before the replay.
TEST_P(CaptureEventsConformanceTest, T34ExternalWaitActsAtEachReplay) {
  std::atomic<int>* const done = NewCounter();
  Begin(origin_);
  ASSERT_EQ(device().StreamWaitEvent(origin_, event_, kEventExternal),
            Status::kSuccess);
  Write(ptr_, kBlockBytes, kSecond, origin_);
  const GraphExec exec = NewExec(End(origin_));
  for (int i = 1; i <= 2; ++i) {
    LongWork(other_);
    Write(ptr_, kBlockBytes, kFirst, other_);
    Count(other_, done);
    ASSERT_EQ(device().EventRecord(event_, other_, 0), Status::kSuccess);
    Replay(exec);
    EXPECT_EQ(*done, i);
    ExpectWords(ptr_, kBlockBytes, kSecond);
  }
}

// A replay records the event again while older work is still pending.
TEST_P(CaptureEventsConformanceTest, T34ExternalRecordActsAtEachReplay) {
  STRATA_REQUIRE(CanHold(), kNeedsPending);
  Begin(origin_);
  Write(ptr_, kBlockBytes, kFirst, origin_);
  ASSERT_EQ(device().EventRecord(event_, origin_, kEventExternal),
            Status::kSuccess);
  const GraphExec exec = NewExec(End(origin_));
  for (int i = 0; i < 2; ++i) {
    LongWork(other_);
    ASSERT_EQ(device().EventRecord(event_, other_, 0), Status::kSuccess);
    EXPECT_EQ(device().EventQuery(event_), Status::kNotReady);
    Replay(exec);
    EXPECT_EQ(device().EventQuery(event_), Status::kSuccess);
    EXPECT_EQ(device().StreamQuery(other_), Status::kNotReady);
    ASSERT_EQ(device().StreamSynchronize(other_), Status::kSuccess);
  }
}

TEST_P(CaptureEventsConformanceTest, RuleE9ExternalEventsNeedACapture) {
  EXPECT_NE(device().EventRecord(event_, origin_, kEventExternal),
            Status::kSuccess);
  EXPECT_NE(device().StreamWaitEvent(origin_, event_, kEventExternal),
            Status::kSuccess);
}

// C6.
TEST_P(CaptureEventsConformanceTest, T35CapturesCannotMerge) {
  for (const CaptureMode mode : kCaptureModes) {
    Begin(origin_, mode);
    Begin(other_, mode);
    ASSERT_EQ(device().EventRecord(event_, other_, 0), Status::kSuccess);
    EXPECT_EQ(device().StreamWaitEvent(origin_, event_, 0),
              Status::kStreamCaptureMerge);
    ExpectEnd(origin_, Status::kStreamCaptureInvalidated);
    ExpectEnd(other_, Status::kStreamCaptureInvalidated);
  }
}

// C8.
TEST_P(CaptureEventsConformanceTest, RuleC8EventOfAnInvalidatedCapture) {
  Begin(origin_);
  ASSERT_EQ(device().EventRecord(event_, origin_, 0), Status::kSuccess);
  EXPECT_EQ(device().StreamQuery(origin_), Status::kStreamCaptureUnsupported);
  EXPECT_EQ(device().StreamWaitEvent(other_, event_, 0), Status::kInvalidValue);
  EXPECT_EQ(device().StreamWaitEvent(origin_, event_, 0),
            Status::kStreamCaptureInvalidated);
  EXPECT_EQ(StatusOf(other_), CaptureStatus::kNone);
  ExpectEnd(origin_, Status::kStreamCaptureInvalidated);
}

}  // namespace
}  // namespace strata
