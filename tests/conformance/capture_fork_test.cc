// Captures of several streams: cuda_semantics.md §2.1 and T21-T24, T36, T37.

#include <atomic>
#include <cstdint>

#include "strata/tests/testing/devices/capture_fixture.h"

namespace strata {
namespace {

class CaptureForkConformanceTest : public CaptureFixture {
 protected:
  // The common setup: a capture of `origin` that `fork` joins.
  void BeginFork(CaptureMode mode = CaptureMode::kGlobal) {
    Begin(origin_, mode);
    Order(origin_, fork_, forked_);
  }

  void SetUp() override {
    CaptureFixture::SetUp();
    if (IsSkipped()) return;
    origin_ = NewStream();
    fork_ = NewStream();
    forked_ = NewEvent();
    joined_ = NewEvent();
    first_ = NewMemory(kBlockBytes);
    second_ = NewMemory(kBlockBytes);
  }

  Stream origin_;
  Stream fork_;
  Event forked_;
  Event joined_;
  DevicePtr first_ = 0;
  DevicePtr second_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Devices, CaptureForkConformanceTest,
                         ::testing::ValuesIn(AllDevices()), NameOfDevice);

// C5.
TEST_P(CaptureForkConformanceTest, T21ForkAndJoinMakeTheEdges) {
  Begin(origin_);
  Write(first_, kBlockBytes, kFirst, origin_);
  const GraphNode before = LastNode(origin_);
  Order(origin_, fork_, forked_);
  EXPECT_EQ(StatusOf(fork_), CaptureStatus::kActive);
  Copy(second_, first_, fork_);
  const GraphNode beside = LastNode(fork_);
  Read(first_, kBlockBytes, origin_);
  const GraphNode reads = LastNode(origin_);
  Order(fork_, origin_, joined_);
  Write(first_, kBlockBytes, kSecond, origin_);
  const GraphNode after = LastNode(origin_);
  const GraphExec exec = NewExec(End(origin_));
  ExpectPredecessors(before, {});
  ExpectPredecessors(beside, {before});
  ExpectPredecessors(reads, {before});
  ExpectPredecessors(after, {reads, beside});
  Replay(exec, 2);
  ExpectWords(first_, kBlockBytes, kSecond);
  ExpectWords(second_, kBlockBytes, kFirst);
}

TEST_P(CaptureForkConformanceTest, T21ForksLeaveTheCaptureWithItsEnd) {
  BeginFork();
  Order(fork_, origin_, joined_);
  End(origin_);
  EXPECT_EQ(StatusOf(origin_), CaptureStatus::kNone);
  EXPECT_EQ(StatusOf(fork_), CaptureStatus::kNone);
  Write(first_, kBlockBytes, kFirst, fork_);
  ASSERT_EQ(device().StreamSynchronize(fork_), Status::kSuccess);
  ExpectWords(first_, kBlockBytes, kFirst);
}

// A record captures the current nodes: a later join does not see later nodes.
TEST_P(CaptureForkConformanceTest, T21CapturedEventKeepsItsNodes) {
  Begin(origin_);
  Write(first_, kBlockBytes, kFirst, origin_);
  const GraphNode before = LastNode(origin_);
  ASSERT_EQ(device().EventRecord(forked_, origin_, 0), Status::kSuccess);
  Write(first_, kBlockBytes, kSecond, origin_);
  ASSERT_EQ(device().StreamWaitEvent(fork_, forked_, 0), Status::kSuccess);
  Read(second_, kBlockBytes, fork_);
  const GraphNode beside = LastNode(fork_);
  Order(fork_, origin_, joined_);
  End(origin_);
  ExpectPredecessors(beside, {before});
}

TEST_P(CaptureForkConformanceTest, T21ForkFromAFork) {
  const Stream third = NewStream();
  const Event again = NewEvent();
  std::atomic<int>* const runs = NewCounter();
  BeginFork();
  Order(fork_, third, again);
  Count(third, runs);
  Order(third, fork_, again);
  Order(fork_, origin_, joined_);
  Replay(NewExec(End(origin_)));
  EXPECT_EQ(*runs, 1);
}

// A graph contains nodes of several devices.
TEST_P(CaptureForkConformanceTest, T21ForkOnAnotherDevice) {
  STRATA_REQUIRE(HasTwoDevices(), kNeedsTwoDevices);
  const Stream far = NewStream(kStreamNonBlocking, 1);
  const Event far_event = NewEvent(1);
  const DevicePtr far_ptr = NewMemory(kBlockBytes, 1);
  Begin(origin_);
  Write(first_, kBlockBytes, kFirst, origin_);
  Order(origin_, far, forked_);
  EXPECT_EQ(InfoOf(far).id, InfoOf(origin_).id);
  Write(far_ptr, kBlockBytes, kSecond, far);
  Order(far, origin_, far_event);
  Replay(NewExec(End(origin_)));
  ExpectWords(first_, kBlockBytes, kFirst);
  ExpectWords(far_ptr, kBlockBytes, kSecond, 1);
}

// C5: older work is not part of the graph, and runs.
TEST_P(CaptureForkConformanceTest, RuleC5StreamsWithWorkMayJoin) {
  std::atomic<int>* const done = NewCounter();
  std::atomic<int>* const runs = NewCounter();
  const Event older = NewEvent();
  LongWork(fork_);
  Count(fork_, done);
  ASSERT_EQ(device().EventRecord(older, fork_, 0), Status::kSuccess);
  BeginFork();
  Count(fork_, runs);
  const GraphNode beside = LastNode(fork_);
  Order(fork_, origin_, joined_);
  const GraphExec exec = NewExec(End(origin_));
  ExpectPredecessors(beside, {});
  const Stream stream = NewStream();
  Launch(exec, stream);
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  EXPECT_EQ(*runs, 1);
  if (CanHold()) {
    EXPECT_EQ(device().EventQuery(older), Status::kNotReady);
  }
  ASSERT_EQ(device().EventSynchronize(older), Status::kSuccess);
  EXPECT_EQ(*done, 1);
}

// C3: after a failed capture, all its streams are usable.
TEST_P(CaptureForkConformanceTest, T22UnjoinedForkFailsTheEnd) {
  BeginFork();
  Write(first_, kBlockBytes, kFirst, fork_);
  ExpectEnd(origin_, Status::kStreamCaptureUnjoined);
  EXPECT_EQ(StatusOf(fork_), CaptureStatus::kNone);
  Write(first_, kBlockBytes, kSecond, fork_);
  Write(second_, kBlockBytes, kSecond, origin_);
  ASSERT_EQ(device().Synchronize(), Status::kSuccess);
  ExpectWords(first_, kBlockBytes, kSecond);
  ExpectWords(second_, kBlockBytes, kSecond);
}

TEST_P(CaptureForkConformanceTest, T22StreamsCaptureAgainAfterAFailure) {
  std::atomic<int>* const runs = NewCounter();
  BeginFork();
  Count(fork_, runs);
  ExpectEnd(origin_, Status::kStreamCaptureUnjoined);
  BeginFork();
  Count(fork_, runs);
  Order(fork_, origin_, joined_);
  Replay(NewExec(End(origin_)));
  EXPECT_EQ(*runs, 1);
}

// Whether a fork without captured work must join.
TEST_P(CaptureForkConformanceTest, T22ForkWithoutWorkNeedNotJoin) {
  BeginFork();
  End(origin_);
  EXPECT_EQ(StatusOf(origin_), CaptureStatus::kNone);
  EXPECT_EQ(StatusOf(fork_), CaptureStatus::kNone);
}

// C4.
TEST_P(CaptureForkConformanceTest, T23WorkAfterTheJoinIsUnjoined) {
  BeginFork();
  Write(first_, kBlockBytes, kFirst, fork_);
  Order(fork_, origin_, joined_);
  Write(first_, kBlockBytes, kSecond, fork_);
  ExpectEnd(origin_, Status::kStreamCaptureUnjoined);
}

TEST_P(CaptureForkConformanceTest, T23JoiningAgainHelps) {
  BeginFork();
  Write(first_, kBlockBytes, kFirst, fork_);
  Order(fork_, origin_, joined_);
  Write(first_, kBlockBytes, kSecond, fork_);
  Order(fork_, origin_, joined_);
  Replay(NewExec(End(origin_)));
  ExpectWords(first_, kBlockBytes, kSecond);
}

TEST_P(CaptureForkConformanceTest, T24CaptureEndsInItsOrigin) {
  BeginFork();
  Write(first_, kBlockBytes, kFirst, fork_);
  Order(fork_, origin_, joined_);
  Graph graph;
  EXPECT_EQ(device().StreamEndCapture(fork_, &graph),
            Status::kStreamCaptureUnmatched);
  EXPECT_FALSE(graph);
  EXPECT_EQ(StatusOf(origin_), CaptureStatus::kInvalidated);
  ExpectEnd(origin_, Status::kStreamCaptureInvalidated);
  EXPECT_EQ(StatusOf(fork_), CaptureStatus::kNone);
}

TEST_P(CaptureForkConformanceTest, T36ForkHasTheIdOfItsOrigin) {
  BeginFork();
  const std::uint64_t id = InfoOf(origin_).id;
  EXPECT_EQ(InfoOf(fork_).id, id);
  Elsewhere([&] { EXPECT_EQ(InfoOf(fork_).id, id); });
  Order(fork_, origin_, joined_);
  End(origin_);
}

// C9.
TEST_P(CaptureForkConformanceTest, T37ForkCannotBegin) {
  BeginFork();
  EXPECT_EQ(device().StreamBeginCapture(fork_, CaptureMode::kGlobal),
            Status::kIllegalState);
  Abandon(origin_);
}

// C14: the refusal holds for every stream of the capture, until its origin ends
// it.
TEST_P(CaptureForkConformanceTest, RuleC14InvalidatedCaptureRefusesAll) {
  std::atomic<int>* const runs = NewCounter();
  BeginFork();
  Write(first_, kBlockBytes, kFirst, fork_);
  EXPECT_EQ(device().StreamQuery(fork_), Status::kStreamCaptureUnsupported);
  for (const Stream& stream : {origin_, fork_}) {
    EXPECT_EQ(StatusOf(stream), CaptureStatus::kInvalidated);
    EXPECT_EQ(device().MemsetAsync(first_, 0, kBlockBytes, stream),
              Status::kStreamCaptureInvalidated);
    EXPECT_EQ(device().MemcpyAsync(second_, first_, kBlockBytes, stream),
              Status::kStreamCaptureInvalidated);
    EXPECT_EQ(device().LaunchHostFunc(
                  stream, [](void*) {}, runs),
              Status::kStreamCaptureInvalidated);
    EXPECT_EQ(device().EventRecord(joined_, stream, 0),
              Status::kStreamCaptureInvalidated);
  }
  ExpectEnd(origin_, Status::kStreamCaptureInvalidated);
  EXPECT_EQ(StatusOf(fork_), CaptureStatus::kNone);
}

}  // namespace
}  // namespace strata
