// The life of a capture: cuda_semantics.md §2.1 and T19, T20, T25.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "strata/tests/testing/devices/capture_fixture.h"

namespace strata {
namespace {

using CaptureConformanceTest = CaptureFixture;

INSTANTIATE_TEST_SUITE_P(Devices, CaptureConformanceTest,
                         ::testing::ValuesIn(AllDevices()), NameOfDevice);

TEST_P(CaptureConformanceTest, T19LegacyStreamCannotCapture) {
  EXPECT_EQ(device().StreamBeginCapture(device().LegacyStream(),
                                        CaptureMode::kRelaxed),
            Status::kStreamCaptureUnsupported);
}

// C1: unlike the legacy stream.
TEST_P(CaptureConformanceTest, T19PerThreadStreamCanCapture) {
  const Stream stream = device().PerThreadStream();
  Begin(stream);
  EXPECT_EQ(StatusOf(stream), CaptureStatus::kActive);
  End(stream);
}

TEST_P(CaptureConformanceTest, T19BeginningTwiceIsRefused) {
  const Stream stream = NewStream();
  Begin(stream);
  EXPECT_EQ(device().StreamBeginCapture(stream, CaptureMode::kGlobal),
            Status::kIllegalState);
  Abandon(stream);
}

TEST_P(CaptureConformanceTest, T19EndWithoutBeginIsRefused) {
  const Stream stream = NewStream();
  Graph graph;
  EXPECT_EQ(device().StreamEndCapture(stream, &graph), Status::kIllegalState);
  EXPECT_FALSE(graph);
}

// The device keeps its promise: a refused call has no effect.
TEST_P(CaptureConformanceTest, T19EndIntoNothingIsRefused) {
  const Stream stream = NewStream();
  Begin(stream);
  EXPECT_EQ(device().StreamEndCapture(stream, nullptr), Status::kInvalidValue);
  EXPECT_EQ(StatusOf(stream), CaptureStatus::kActive);
  End(stream);
}

TEST_P(CaptureConformanceTest, RuleC1UnknownModeIsRefused) {
  const Stream stream = NewStream();
  EXPECT_EQ(device().StreamBeginCapture(stream, static_cast<CaptureMode>(7)),
            Status::kInvalidValue);
  EXPECT_EQ(StatusOf(stream), CaptureStatus::kNone);
}

TEST_P(CaptureConformanceTest, RuleC1EarlierWorkStillRuns) {
  const Stream stream = NewStream();
  const DevicePtr ptr = NewMemory(kBlockBytes);
  std::atomic<int>* const done = NewCounter();
  LongWork(stream);
  Write(ptr, kBlockBytes, kFirst, stream);
  Count(stream, done);
  Begin(stream);
  EXPECT_TRUE(InfoOf(stream).dependencies.empty());
  End(stream);
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  EXPECT_EQ(*done, 1);
  ExpectWords(ptr, kBlockBytes, kFirst);
}

// Work after the capture is ordered behind work before it, not behind captured
// work.
TEST_P(CaptureConformanceTest, RuleC1StreamGoesOnAfterTheCapture) {
  const Stream stream = NewStream();
  const DevicePtr ptr = NewMemory(kBlockBytes);
  Capture(stream, [&] { Write(ptr, kBlockBytes, kFirst, stream); });
  Write(ptr, kBlockBytes, kSecond, stream);
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  ExpectWords(ptr, kBlockBytes, kSecond);
}

// C2.
TEST_P(CaptureConformanceTest, T20NothingRunsBeforeALaunch) {
  const Stream stream = NewStream();
  const DevicePtr ptr = NewMemory(kBlockBytes);
  std::atomic<int>* const runs = NewCounter();
  Write(ptr, kBlockBytes, kSecond, stream);
  ASSERT_EQ(device().Synchronize(), Status::kSuccess);
  const Graph graph = Capture(stream, [&] {
    Write(ptr, kBlockBytes, kFirst, stream);
    Count(stream, runs);
  });
  const GraphExec exec = NewExec(graph);
  ASSERT_EQ(device().Synchronize(), Status::kSuccess);
  EXPECT_EQ(*runs, 0);
  ExpectWords(ptr, kBlockBytes, kSecond);
  Replay(exec);
  EXPECT_EQ(*runs, 1);
  ExpectWords(ptr, kBlockBytes, kFirst);
}

TEST_P(CaptureConformanceTest, T20EachLaunchRunsOnce) {
  const Stream stream = NewStream();
  const DevicePtr ptr = NewMemory(kBlockBytes);
  std::atomic<int>* const runs = NewCounter();
  const GraphExec exec = NewExec(Capture(stream, [&] {
    Write(ptr, kBlockBytes, kFirst, stream);
    Count(stream, runs);
  }));
  Replay(exec);
  Write(ptr, kBlockBytes, kSecond, stream);
  ASSERT_EQ(device().Synchronize(), Status::kSuccess);
  Replay(exec);
  EXPECT_EQ(*runs, 2);
  ExpectWords(ptr, kBlockBytes, kFirst);
}

TEST_P(CaptureConformanceTest, T20CapturedWorkKeepsItsOrder) {
  const Stream stream = NewStream();
  const DevicePtr ptr = NewMemory(kBlockBytes);
  const DevicePtr copy = NewMemory(kBlockBytes);
  Begin(stream);
  Write(ptr, kBlockBytes, kFirst, stream);
  const GraphNode first = LastNode(stream);
  Copy(copy, ptr, stream);
  const GraphNode second = LastNode(stream);
  Write(ptr, kBlockBytes, kSecond, stream);
  const GraphNode third = LastNode(stream);
  const GraphExec exec = NewExec(End(stream));
  ExpectPredecessors(first, {});
  ExpectPredecessors(second, {first});
  ExpectPredecessors(third, {second});
  Replay(exec, 2);
  ExpectWords(copy, kBlockBytes, kFirst);
  ExpectWords(ptr, kBlockBytes, kSecond);
}

TEST_P(CaptureConformanceTest, T20FillsAreCaptured) {
  const Stream stream = NewStream();
  const DevicePtr ptr = NewMemory(kBlockBytes);
  Write(ptr, kBlockBytes, kSecond, stream);
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  const GraphExec exec = NewExec(Capture(stream, [&] {
    EXPECT_EQ(device().MemsetAsync(ptr, 0x11, kBlockBytes, stream),
              Status::kSuccess);
  }));
  ExpectWords(ptr, kBlockBytes, kSecond);
  Replay(exec);
  ExpectWords(ptr, kBlockBytes, kFirst);
}

TEST_P(CaptureConformanceTest, T20AnEmptyCaptureIsAGraph) {
  const Stream stream = NewStream();
  Replay(NewExec(Capture(stream, [] {})), 2);
}

// C25: operands are addresses; each replay reads their current content.
TEST_P(CaptureConformanceTest, RuleC25HostMemoryIsReadByEachReplay) {
  const Stream stream = NewStream();
  const DevicePtr ptr = NewMemory(kBlockBytes);
  std::uint64_t* const host = NewPinned(kBlockBytes / sizeof(std::uint64_t));
  const std::size_t words = kBlockBytes / sizeof(std::uint64_t);
  const GraphExec exec = NewExec(Capture(
      stream, [&] { Copy(ptr, reinterpret_cast<DevicePtr>(host), stream); }));
  for (const std::uint64_t word : {kFirst, kSecond}) {
    std::fill(host, host + words, word);
    Replay(exec);
    ExpectWords(ptr, kBlockBytes, word);
  }
}

// C3 for each thread mode: only a relaxed capture may end in another thread.
// Otherwise the end is refused, and the capture is over.
TEST_P(CaptureConformanceTest, T25CaptureEndsInItsThread) {
  for (const CaptureMode mode :
       {CaptureMode::kGlobal, CaptureMode::kThreadLocal}) {
    const Stream stream = NewStream();
    Begin(stream, mode);
    Elsewhere([&] {
      Graph graph;
      EXPECT_EQ(device().StreamEndCapture(stream, &graph),
                Status::kStreamCaptureWrongThread)
          << NameOf(mode);
      EXPECT_FALSE(graph);
    });
    EXPECT_EQ(StatusOf(stream), CaptureStatus::kNone);
    Graph graph;
    EXPECT_EQ(device().StreamEndCapture(stream, &graph), Status::kIllegalState);
  }
}

TEST_P(CaptureConformanceTest, T25RelaxedCaptureEndsAnywhere) {
  const Stream stream = NewStream();
  std::atomic<int>* const runs = NewCounter();
  Begin(stream, CaptureMode::kRelaxed);
  Count(stream, runs);
  Graph graph;
  Elsewhere([&] { graph = End(stream); });
  Replay(NewExec(graph));
  EXPECT_EQ(*runs, 1);
}

// C9.
TEST_P(CaptureConformanceTest, RuleC3BeginningTwiceLeavesTheCapture) {
  const Stream stream = NewStream();
  std::atomic<int>* const runs = NewCounter();
  Begin(stream);
  EXPECT_EQ(device().StreamBeginCapture(stream, CaptureMode::kGlobal),
            Status::kIllegalState);
  EXPECT_EQ(StatusOf(stream), CaptureStatus::kActive);
  Count(stream, runs);
  Replay(NewExec(End(stream)));
  EXPECT_EQ(*runs, 1);
}

}  // namespace
}  // namespace strata
