// Memory that graphs allocate: cuda_semantics.md P13-P17 and T59-T61.

#include <cstddef>
#include <cstdint>

#include "strata/tests/testing/devices/graph_memory_fixture.h"

namespace strata {
namespace {

using GraphMemoryConformanceTest = GraphMemoryFixture;

INSTANTIATE_TEST_SUITE_P(Devices, GraphMemoryConformanceTest,
                         ::testing::ValuesIn(AllDevices()), NameOfDevice);

// P13.
TEST_P(GraphMemoryConformanceTest, T59MemoryOfAGraphIsThereAtEachReplay) {
  const DevicePtr result = NewMemory(kBlockBytes);
  Begin(stream_);
  const DevicePtr ptr = Take(stream_);
  const GraphNode allocation = LastNode(stream_);
  Write(ptr, kBlockBytes, kFirst, stream_);
  const GraphNode write = LastNode(stream_);
  Copy(result, ptr, stream_);
  Give(ptr, stream_);
  const GraphExec exec = NewExec(End(stream_));
  ExpectPredecessors(write, {allocation});
  for (int i = 0; i < 3; ++i) {
    Write(result, kBlockBytes, kSecond, stream_);
    ASSERT_EQ(device().StreamSynchronize(stream_), Status::kSuccess);
    Replay(exec);
    ExpectWords(result, kBlockBytes, kFirst);
  }
}

// P14: memory that a launch leaves allocated blocks the next launch.
TEST_P(GraphMemoryConformanceTest, T59SecondLaunchNeedsTheMemoryFreed) {
  DevicePtr ptr = 0;
  const GraphExec exec = NewExec(Escaping(&ptr));
  Replay(exec);
  EXPECT_EQ(device().GraphLaunch(exec, stream_), Status::kInvalidValue);
  ExpectWords(ptr, kBlockBytes, kFirst);
  Give(ptr, stream_);
  Launch(exec, stream_);
  Give(ptr, stream_);
  EXPECT_EQ(device().StreamSynchronize(stream_), Status::kSuccess);
}

TEST_P(GraphMemoryConformanceTest, T59LaunchCanFreeWhatTheLastOneLeft) {
  DevicePtr ptr = 0;
  const GraphExec exec = NewExec(Escaping(&ptr), kGraphAutoFreeOnLaunch);
  Replay(exec, 3);
  ExpectWords(ptr, kBlockBytes, kFirst);
  Give(ptr, stream_);
  EXPECT_EQ(device().StreamSynchronize(stream_), Status::kSuccess);
}

// P15.
TEST_P(GraphMemoryConformanceTest, T60OneExecAtATime) {
  const Graph graph = Closed(kBlockBytes);
  GraphExec first;
  GraphExec second;
  ASSERT_EQ(device().GraphInstantiate(&first, graph, 0), Status::kSuccess);
  EXPECT_EQ(device().GraphInstantiate(&second, graph, 0),
            Status::kNotSupported);
  EXPECT_FALSE(second);
  ASSERT_EQ(device().GraphExecDestroy(first), Status::kSuccess);
  Replay(NewExec(graph));
}

// P14 and C16: a graph may not free memory of a stream.
TEST_P(GraphMemoryConformanceTest, T60StreamsMemoryIsNotFreedByAGraph) {
  const Stream other = NewStream();
  const DevicePtr ptr = Take(other);
  ASSERT_EQ(device().StreamSynchronize(other), Status::kSuccess);
  Begin(stream_);
  EXPECT_EQ(device().FreeAsync(ptr, stream_), Status::kInvalidValue);
  Abandon(stream_);
  Write(ptr, kBlockBytes, kFirst, other);
  ExpectWords(ptr, kBlockBytes, kFirst);
  Give(ptr, other);
}

// A wrong free does not affect the capture.
TEST_P(GraphMemoryConformanceTest, RuleC16MemoryOfNoPoolIsNotFreedByAGraph) {
  const DevicePtr ptr = NewMemory(kBlockBytes);
  std::atomic<int>* const runs = NewCounter();
  Begin(stream_);
  EXPECT_EQ(device().FreeAsync(ptr, stream_), Status::kInvalidValue);
  EXPECT_EQ(device().FreeAsync(0, stream_), Status::kSuccess);
  EXPECT_EQ(StatusOf(stream_), CaptureStatus::kActive);
  Count(stream_, runs);
  Replay(NewExec(End(stream_)));
  EXPECT_EQ(*runs, 1);
}

TEST_P(GraphMemoryConformanceTest, RuleP14GraphFreesOnce) {
  Begin(stream_);
  const DevicePtr ptr = Take(stream_);
  Give(ptr, stream_);
  EXPECT_EQ(device().FreeAsync(ptr, stream_), Status::kInvalidValue);
  Abandon(stream_);
}

TEST_P(GraphMemoryConformanceTest, RuleP14GraphsOwnMemoryIsNotFreedOutside) {
  DevicePtr ptr = 0;
  const GraphExec exec = NewExec(Capture(stream_, [&] {
    ptr = Take(stream_);
    Give(ptr, stream_);
  }));
  Replay(exec);
  EXPECT_NE(device().FreeAsync(ptr, stream_), Status::kSuccess);
  EXPECT_NE(device().MemFree(ptr), Status::kSuccess);
  Replay(exec);
}

TEST_P(GraphMemoryConformanceTest, RuleP14EscapingMemoryIsFreedAtOnce) {
  DevicePtr ptr = 0;
  const GraphExec exec = NewExec(Escaping(&ptr));
  for (int i = 0; i < 2; ++i) {
    Replay(exec);
    ExpectWords(ptr, kBlockBytes, kFirst);
    EXPECT_EQ(device().MemFree(ptr), Status::kSuccess);
  }
}

TEST_P(GraphMemoryConformanceTest, RuleP14AnotherGraphFreesEscapingMemory) {
  const DevicePtr result = NewMemory(kBlockBytes);
  DevicePtr ptr = 0;
  const GraphExec allocates = NewExec(Escaping(&ptr));
  const GraphExec frees = NewExec(Capture(stream_, [&] {
    Copy(result, ptr, stream_);
    Give(ptr, stream_);
  }));
  for (int i = 0; i < 2; ++i) {
    Launch(allocates, stream_);
    Launch(frees, stream_);
  }
  ASSERT_EQ(device().StreamSynchronize(stream_), Status::kSuccess);
  ExpectWords(result, kBlockBytes, kFirst);
}

// P15: the holder of the address may use the memory.
TEST_P(GraphMemoryConformanceTest, T61EscapingMemoryOutlivesItsGraph) {
  const DevicePtr result = NewMemory(kBlockBytes);
  Begin(stream_);
  const DevicePtr ptr = Take(stream_);
  Write(ptr, kBlockBytes, kFirst, stream_);
  Graph graph;
  ASSERT_EQ(device().StreamEndCapture(stream_, &graph), Status::kSuccess);
  GraphExec exec;
  ASSERT_EQ(device().GraphInstantiate(&exec, graph, 0), Status::kSuccess);
  Launch(exec, stream_);
  ASSERT_EQ(device().GraphExecDestroy(exec), Status::kSuccess);
  ASSERT_EQ(device().GraphDestroy(graph), Status::kSuccess);
  ASSERT_EQ(device().StreamSynchronize(stream_), Status::kSuccess);
  ExpectWords(ptr, kBlockBytes, kFirst);
  Write(ptr, kBlockBytes, kSecond, stream_);
  Copy(result, ptr, stream_);
  EXPECT_EQ(device().FreeAsync(ptr, stream_), Status::kSuccess);
  ASSERT_EQ(device().StreamSynchronize(stream_), Status::kSuccess);
  ExpectWords(result, kBlockBytes, kSecond);
}

// P16.
TEST_P(GraphMemoryConformanceTest, RuleP16MemoryFreedBeforeIsUsedAgain) {
  const DevicePtr result = NewMemory(kBlockBytes);
  Begin(stream_);
  const DevicePtr first = Take(stream_);
  Write(first, kBlockBytes, kFirst, stream_);
  Copy(result, first, stream_);
  Give(first, stream_);
  const DevicePtr second = Take(stream_);
  Write(second, kBlockBytes, kSecond, stream_);
  Give(second, stream_);
  const GraphExec exec = NewExec(End(stream_));
  EXPECT_EQ(first, second);
  Replay(exec, 2);
  ExpectWords(result, kBlockBytes, kFirst);
}

TEST_P(GraphMemoryConformanceTest, RuleP16MemoryNotFreedBeforeIsNot) {
  const Stream fork = NewStream();
  const Event event = NewEvent();
  Begin(stream_);
  Order(stream_, fork, event);
  const DevicePtr first = Take(stream_);
  Write(first, kBlockBytes, kFirst, stream_);
  Give(first, stream_);
  const DevicePtr beside = Take(fork);
  Write(beside, kBlockBytes, kSecond, fork);
  Give(beside, fork);
  Order(fork, stream_, event);
  const GraphExec exec = NewExec(End(stream_));
  EXPECT_NE(first, beside);
  Replay(exec, 2);
}

// P16: ordered launches share memory.
TEST_P(GraphMemoryConformanceTest, RuleP16OrderedLaunchesShareMemory) {
  const GraphExec first = NewExec(Closed(kLargeBytes));
  const GraphExec second = NewExec(Closed(kLargeBytes));
  Launch(first, stream_);
  ASSERT_EQ(device().StreamSynchronize(stream_), Status::kSuccess);
  const std::uint64_t reserved = Get(GraphMemAttributeKind::kReservedCurrent);
  EXPECT_GE(reserved, kLargeBytes);
  Launch(second, stream_);
  Launch(first, stream_);
  ASSERT_EQ(device().StreamSynchronize(stream_), Status::kSuccess);
  EXPECT_EQ(Get(GraphMemAttributeKind::kReservedCurrent), reserved);
  EXPECT_GE(Get(GraphMemAttributeKind::kReservedHigh), reserved);
}

TEST_P(GraphMemoryConformanceTest, RuleP16ConcurrentLaunchesDoNot) {
  STRATA_REQUIRE(CanHold(), kNeedsPending);
  const auto slow = [&](const Stream& from, DevicePtr result,
                        std::uint64_t word) {
    return Capture(from, [&] {
      const DevicePtr ptr = Take(from, kLargeBytes);
      Write(ptr, kBlockBytes, word, from);
      LongWork(from);
      Copy(result, ptr, from);
      Give(ptr, from);
    });
  };
  const Stream other = NewStream();
  const DevicePtr first_result = NewMemory(kBlockBytes);
  const DevicePtr second_result = NewMemory(kBlockBytes);
  const GraphExec first = NewExec(slow(stream_, first_result, kFirst));
  const GraphExec second = NewExec(slow(other, second_result, kSecond));
  Launch(first, stream_);
  Launch(second, other);
  ASSERT_EQ(device().Synchronize(), Status::kSuccess);
  EXPECT_GE(Get(GraphMemAttributeKind::kReservedCurrent), 2 * kLargeBytes);
  ExpectWords(first_result, kBlockBytes, kFirst);
  ExpectWords(second_result, kBlockBytes, kSecond);
}

TEST_P(GraphMemoryConformanceTest, RuleP16TrimGivesUnusedMemoryBack) {
  const std::size_t before = FreeBytes();
  Replay(NewExec(Closed(kLargeBytes)));
  ASSERT_EQ(device().GraphMemTrim(), Status::kSuccess);
  EXPECT_EQ(Get(GraphMemAttributeKind::kReservedCurrent), 0u);
  ExpectFreeBytes(before);
}

TEST_P(GraphMemoryConformanceTest, RuleP16TrimLeavesMemoryInUse) {
  DevicePtr ptr = 0;
  Replay(NewExec(Escaping(&ptr)));
  ASSERT_EQ(device().GraphMemTrim(), Status::kSuccess);
  EXPECT_GE(Get(GraphMemAttributeKind::kUsedCurrent), kBlockBytes);
  ExpectWords(ptr, kBlockBytes, kFirst);
  Give(ptr, stream_);
  ASSERT_EQ(device().StreamSynchronize(stream_), Status::kSuccess);
}

// P17: the freeing stream is part of the capture.
TEST_P(GraphMemoryConformanceTest, RuleP17DanglingFreeFailsTheEnd) {
  const Stream fork = NewStream();
  const Event event = NewEvent();
  Begin(stream_);
  const DevicePtr ptr = Take(stream_);
  Order(stream_, fork, event);
  Give(ptr, fork);
  ExpectEnd(stream_, Status::kStreamCaptureUnjoined);
}

// C33: a failed capture has allocated nothing.
TEST_P(GraphMemoryConformanceTest, RuleC33FailedCaptureTakesNoMemory) {
  const std::size_t before = FreeBytes();
  Begin(stream_);
  Take(stream_, kLargeBytes);
  EXPECT_EQ(device().StreamQuery(stream_), Status::kStreamCaptureUnsupported);
  ExpectEnd(stream_, Status::kStreamCaptureInvalidated);
  EXPECT_EQ(Get(GraphMemAttributeKind::kUsedCurrent), 0u);
  ExpectFreeBytes(before);
}

// The memory of a graph that is never launched consists of addresses only.
TEST_P(GraphMemoryConformanceTest, RuleP13CaptureTakesNoMemory) {
  const std::size_t before = FreeBytes();
  const Graph graph = Closed(kLargeBytes);
  ExpectFreeBytes(before);
  Replay(NewExec(graph));
}

}  // namespace
}  // namespace strata
