// Captures of several streams: cuda_semantics.md §2.1 and T21-T24, T36, T37.

#include <atomic>
#include <cstdint>

#include "strata/tests/testing/capture_fixture.h"

namespace strata {
namespace {

class CaptureForkConformanceTest : public CaptureFixture {
 protected:
  // What most tests here are about: a capture of `origin` that `fork` joins.
  void BeginFork(CaptureMode mode = CaptureMode::kGlobal) {
    Begin(origin, mode);
    Order(origin, fork, forked);
  }

  void SetUp() override {
    CaptureFixture::SetUp();
    if (IsSkipped()) return;
    origin = NewStream();
    fork = NewStream();
    forked = NewEvent();
    joined = NewEvent();
    first = NewMemory(kBlockBytes);
    second = NewMemory(kBlockBytes);
  }

  Stream origin;
  Stream fork;
  Event forked;
  Event joined;
  DevicePtr first = 0;
  DevicePtr second = 0;
};

INSTANTIATE_TEST_SUITE_P(Devices, CaptureForkConformanceTest,
                         ::testing::ValuesIn(AllDevices()), NameOfDevice);

// C5.
TEST_P(CaptureForkConformanceTest, T21ForkAndJoinMakeTheEdges) {
  Begin(origin);
  Write(first, kBlockBytes, kFirst, origin);
  const GraphNode before = LastNode(origin);
  Order(origin, fork, forked);
  EXPECT_EQ(StatusOf(fork), CaptureStatus::kActive);
  Copy(second, first, fork);
  const GraphNode beside = LastNode(fork);
  Read(first, kBlockBytes, origin);
  const GraphNode reads = LastNode(origin);
  Order(fork, origin, joined);
  Write(first, kBlockBytes, kSecond, origin);
  const GraphNode after = LastNode(origin);
  const GraphExec exec = NewExec(End(origin));
  ExpectPredecessors(before, {});
  ExpectPredecessors(beside, {before});
  ExpectPredecessors(reads, {before});
  ExpectPredecessors(after, {reads, beside});
  Replay(exec, 2);
  ExpectWords(first, kBlockBytes, kSecond);
  ExpectWords(second, kBlockBytes, kFirst);
}

TEST_P(CaptureForkConformanceTest, T21ForksLeaveTheCaptureWithItsEnd) {
  BeginFork();
  Order(fork, origin, joined);
  End(origin);
  EXPECT_EQ(StatusOf(origin), CaptureStatus::kNone);
  EXPECT_EQ(StatusOf(fork), CaptureStatus::kNone);
  Write(first, kBlockBytes, kFirst, fork);
  ASSERT_EQ(device().StreamSynchronize(fork), Status::kSuccess);
  ExpectWords(first, kBlockBytes, kFirst);
}

// A record takes the nodes there are: what joins later sees no later ones.
TEST_P(CaptureForkConformanceTest, T21CapturedEventKeepsItsNodes) {
  Begin(origin);
  Write(first, kBlockBytes, kFirst, origin);
  const GraphNode before = LastNode(origin);
  ASSERT_EQ(device().EventRecord(forked, origin, 0), Status::kSuccess);
  Write(first, kBlockBytes, kSecond, origin);
  ASSERT_EQ(device().StreamWaitEvent(fork, forked, 0), Status::kSuccess);
  Read(second, kBlockBytes, fork);
  const GraphNode beside = LastNode(fork);
  Order(fork, origin, joined);
  End(origin);
  ExpectPredecessors(beside, {before});
}

TEST_P(CaptureForkConformanceTest, T21ForkFromAFork) {
  const Stream third = NewStream();
  const Event again = NewEvent();
  std::atomic<int>* const runs = NewCounter();
  BeginFork();
  Order(fork, third, again);
  Count(third, runs);
  Order(third, fork, again);
  Order(fork, origin, joined);
  Replay(NewExec(End(origin)));
  EXPECT_EQ(*runs, 1);
}

// A graph has nodes of several devices.
TEST_P(CaptureForkConformanceTest, T21ForkOnAnotherDevice) {
  STRATA_REQUIRE(HasTwoDevices(), kNeedsTwoDevices);
  const Stream far = NewStream(kStreamNonBlocking, 1);
  const Event far_event = NewEvent(1);
  const DevicePtr far_ptr = NewMemory(kBlockBytes, 1);
  Begin(origin);
  Write(first, kBlockBytes, kFirst, origin);
  Order(origin, far, forked);
  EXPECT_EQ(InfoOf(far).id, InfoOf(origin).id);
  Write(far_ptr, kBlockBytes, kSecond, far);
  Order(far, origin, far_event);
  Replay(NewExec(End(origin)));
  ExpectWords(first, kBlockBytes, kFirst);
  ExpectWords(far_ptr, kBlockBytes, kSecond, 1);
}

// C5: older work is no part of the graph, and runs.
TEST_P(CaptureForkConformanceTest, RuleC5StreamsWithWorkMayJoin) {
  std::atomic<int>* const done = NewCounter();
  std::atomic<int>* const runs = NewCounter();
  const Event older = NewEvent();
  LongWork(fork);
  Count(fork, done);
  ASSERT_EQ(device().EventRecord(older, fork, 0), Status::kSuccess);
  BeginFork();
  Count(fork, runs);
  const GraphNode beside = LastNode(fork);
  Order(fork, origin, joined);
  const GraphExec exec = NewExec(End(origin));
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

// C3: a capture that fails leaves all of its streams as any others.
TEST_P(CaptureForkConformanceTest, T22UnjoinedForkFailsTheEnd) {
  BeginFork();
  Write(first, kBlockBytes, kFirst, fork);
  ExpectEnd(origin, Status::kStreamCaptureUnjoined);
  EXPECT_EQ(StatusOf(fork), CaptureStatus::kNone);
  Write(first, kBlockBytes, kSecond, fork);
  Write(second, kBlockBytes, kSecond, origin);
  ASSERT_EQ(device().Synchronize(), Status::kSuccess);
  ExpectWords(first, kBlockBytes, kSecond);
  ExpectWords(second, kBlockBytes, kSecond);
}

TEST_P(CaptureForkConformanceTest, T22StreamsCaptureAgainAfterAFailure) {
  std::atomic<int>* const runs = NewCounter();
  BeginFork();
  Count(fork, runs);
  ExpectEnd(origin, Status::kStreamCaptureUnjoined);
  BeginFork();
  Count(fork, runs);
  Order(fork, origin, joined);
  Replay(NewExec(End(origin)));
  EXPECT_EQ(*runs, 1);
}

// Whether a fork has to join that nothing was captured on.
TEST_P(CaptureForkConformanceTest, T22PinsAnUnjoinedForkWithoutWork) {
  BeginFork();
  Graph graph;
  const Status status = device().StreamEndCapture(origin, &graph);
  Pin("end_with_an_empty_fork", status);
  EXPECT_EQ(StatusOf(origin), CaptureStatus::kNone);
  EXPECT_EQ(StatusOf(fork), CaptureStatus::kNone);
  if (status == Status::kSuccess) {
    EXPECT_EQ(device().GraphDestroy(graph), Status::kSuccess);
  }
}

// C4.
TEST_P(CaptureForkConformanceTest, T23WorkAfterTheJoinIsUnjoined) {
  BeginFork();
  Write(first, kBlockBytes, kFirst, fork);
  Order(fork, origin, joined);
  Write(first, kBlockBytes, kSecond, fork);
  ExpectEnd(origin, Status::kStreamCaptureUnjoined);
}

TEST_P(CaptureForkConformanceTest, T23JoiningAgainHelps) {
  BeginFork();
  Write(first, kBlockBytes, kFirst, fork);
  Order(fork, origin, joined);
  Write(first, kBlockBytes, kSecond, fork);
  Order(fork, origin, joined);
  Replay(NewExec(End(origin)));
  ExpectWords(first, kBlockBytes, kSecond);
}

TEST_P(CaptureForkConformanceTest, T24CaptureEndsInItsOrigin) {
  BeginFork();
  Write(first, kBlockBytes, kFirst, fork);
  Order(fork, origin, joined);
  Graph graph;
  EXPECT_EQ(device().StreamEndCapture(fork, &graph),
            Status::kStreamCaptureUnmatched);
  EXPECT_FALSE(graph);
  Abandon(origin);
  EXPECT_EQ(StatusOf(fork), CaptureStatus::kNone);
}

TEST_P(CaptureForkConformanceTest, T24PinsTheCaptureAfterAnEndOfItsFork) {
  BeginFork();
  Order(fork, origin, joined);
  Graph graph;
  EXPECT_NE(device().StreamEndCapture(fork, &graph), Status::kSuccess);
  Pin("status_after_end_of_fork", static_cast<std::uint64_t>(StatusOf(origin)));
  Abandon(origin);
}

TEST_P(CaptureForkConformanceTest, T36ForkHasTheIdOfItsOrigin) {
  BeginFork();
  const std::uint64_t id = InfoOf(origin).id;
  EXPECT_EQ(InfoOf(fork).id, id);
  Elsewhere([&] { EXPECT_EQ(InfoOf(fork).id, id); });
  Order(fork, origin, joined);
  End(origin);
}

// C9.
TEST_P(CaptureForkConformanceTest, T37ForkCannotBegin) {
  BeginFork();
  EXPECT_EQ(device().StreamBeginCapture(fork, CaptureMode::kGlobal),
            Status::kIllegalState);
  Abandon(origin);
}

// C14: whichever stream is used, until the origin's end.
TEST_P(CaptureForkConformanceTest, RuleC14InvalidatedCaptureRefusesAll) {
  std::atomic<int>* const runs = NewCounter();
  BeginFork();
  Write(first, kBlockBytes, kFirst, fork);
  EXPECT_EQ(device().StreamQuery(fork), Status::kStreamCaptureUnsupported);
  for (const Stream& stream : {origin, fork}) {
    EXPECT_EQ(StatusOf(stream), CaptureStatus::kInvalidated);
    EXPECT_EQ(device().MemsetAsync(first, 0, kBlockBytes, stream),
              Status::kStreamCaptureInvalidated);
    EXPECT_EQ(device().MemcpyAsync(second, first, kBlockBytes, stream),
              Status::kStreamCaptureInvalidated);
    EXPECT_EQ(device().LaunchHostFunc(
                  stream, [](void*) {}, runs),
              Status::kStreamCaptureInvalidated);
    EXPECT_EQ(device().EventRecord(joined, stream, 0),
              Status::kStreamCaptureInvalidated);
  }
  ExpectEnd(origin, Status::kStreamCaptureInvalidated);
  EXPECT_EQ(StatusOf(fork), CaptureStatus::kNone);
}

}  // namespace
}  // namespace strata
