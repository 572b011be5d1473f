// Graphs: cuda_semantics.md §2.3 and T42, T43, T45, T46, T74.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "strata/tests/testing/devices/capture_fixture.h"

namespace strata {
namespace {

class GraphConformanceTest : public CaptureFixture {
 protected:
  // A graph that stores `word` at `ptr`, from a separate capture.
  Graph Writing(DevicePtr ptr, std::uint64_t word, bool slow = false) {
    const Stream stream = NewStream();
    return Capture(stream, [&] {
      if (slow) LongWork(stream);
      Write(ptr, kBlockBytes, word, stream);
    });
  }
};

INSTANTIATE_TEST_SUITE_P(Devices, GraphConformanceTest,
                         ::testing::ValuesIn(AllDevices()), NameOfDevice);

// The number of running launches, as seen by the graph's host functions.
struct Inside {
  std::atomic<int> now{0};
  std::atomic<int> most{0};
  std::atomic<int> launches{0};
};

void Enter(void* argument) {
  auto* inside = static_cast<Inside*>(argument);
  const int now = ++inside->now;
  if (now > inside->most) inside->most = now;
  ++inside->launches;
}

void Leave(void* argument) { --static_cast<Inside*>(argument)->now; }

// C24: for any streams, and for any longest branch.
TEST_P(GraphConformanceTest, T42LaunchesOfOneExecNeverOverlap) {
  const Stream origin = NewStream();
  const Stream fork = NewStream();
  const Event event = NewEvent();
  for (const Stream& slow : {origin, fork}) {
    Inside inside;
    const GraphExec exec = NewExec(Capture(origin, [&] {
      EXPECT_EQ(device().LaunchHostFunc(origin, Enter, &inside),
                Status::kSuccess);
      Order(origin, fork, event);
      Count(slow == origin ? fork : origin, NewCounter());
      LongWork(slow);
      EXPECT_EQ(device().LaunchHostFunc(slow, Leave, &inside),
                Status::kSuccess);
      Order(fork, origin, event);
    }));
    for (int i = 0; i < 2; ++i) {
      Launch(exec, origin);
      Launch(exec, fork);
    }
    ASSERT_EQ(device().Synchronize(), Status::kSuccess);
    EXPECT_EQ(inside.launches, 4);
    EXPECT_EQ(inside.most, 1);
    EXPECT_EQ(inside.now, 0);
  }
}

TEST_P(GraphConformanceTest, T42LaunchComesBehindEarlierLaunches) {
  STRATA_REQUIRE(CanHold(), kNeedsPending);
  const DevicePtr ptr = NewMemory(kBlockBytes);
  const GraphExec exec = NewExec(Writing(ptr, kFirst, true));
  const Stream first = NewStream();
  const Stream second = NewStream();
  Launch(exec, first);
  Launch(exec, second);
  EXPECT_EQ(device().StreamQuery(second), Status::kNotReady);
  ASSERT_EQ(device().StreamSynchronize(second), Status::kSuccess);
  EXPECT_EQ(device().StreamQuery(first), Status::kSuccess);
}

TEST_P(GraphConformanceTest, RuleC24LaunchIsWorkOfItsStream) {
  const Stream stream = NewStream();
  const DevicePtr ptr = NewMemory(kBlockBytes);
  const DevicePtr copy = NewMemory(kBlockBytes);
  const GraphExec exec = NewExec(Writing(ptr, kSecond));
  LongWork(stream);
  Write(ptr, kBlockBytes, kFirst, stream);
  Launch(exec, stream);
  Copy(copy, ptr, stream);
  Write(ptr, kBlockBytes, kFirst, stream);
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  ExpectWords(copy, kBlockBytes, kSecond);
  ExpectWords(ptr, kBlockBytes, kFirst);
}

TEST_P(GraphConformanceTest, RuleC24ExecsAreIndependent) {
  const DevicePtr ptr = NewMemory(kBlockBytes);
  const DevicePtr other = NewMemory(kBlockBytes);
  const GraphExec slow = NewExec(Writing(ptr, kFirst, true));
  const GraphExec quick = NewExec(Writing(other, kFirst));
  const Stream first = NewStream();
  const Stream second = NewStream();
  Launch(slow, first);
  Launch(quick, second);
  ASSERT_EQ(device().StreamSynchronize(second), Status::kSuccess);
  if (CanHold()) {
    EXPECT_EQ(device().StreamQuery(first), Status::kNotReady);
  }
  ASSERT_EQ(device().StreamSynchronize(first), Status::kSuccess);
  ExpectWords(ptr, kBlockBytes, kFirst);
  ExpectWords(other, kBlockBytes, kFirst);
}

TEST_P(GraphConformanceTest, RuleC24OneGraphMakesSeveralExecs) {
  std::atomic<int>* const runs = NewCounter();
  const Stream stream = NewStream();
  const Graph graph = Capture(stream, [&] { Count(stream, runs); });
  Replay(NewExec(graph), 2);
  Replay(NewExec(graph), 3);
  EXPECT_EQ(*runs, 5);
}

// C32.
TEST_P(GraphConformanceTest, RuleC32ReplaysRunInAnyStream) {
  const DevicePtr ptr = NewMemory(kBlockBytes);
  const GraphExec exec = NewExec(Writing(ptr, kFirst));
  for (const Stream& stream :
       {NewStream(kStreamDefault), device().LegacyStream(),
        device().PerThreadStream()}) {
    Write(ptr, kBlockBytes, kSecond, stream);
    Launch(exec, stream);
    ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
    ExpectWords(ptr, kBlockBytes, kFirst);
  }
}

// C27.
TEST_P(GraphConformanceTest, T43DestroyedExecStillRuns) {
  const DevicePtr ptr = NewMemory(kBlockBytes);
  const Stream stream = NewStream();
  GraphExec exec;
  ASSERT_EQ(device().GraphInstantiate(&exec, Writing(ptr, kFirst, true), 0),
            Status::kSuccess);
  Launch(exec, stream);
  EXPECT_EQ(device().GraphExecDestroy(exec), Status::kSuccess);
  if (CanHold()) {
    EXPECT_EQ(device().StreamQuery(stream), Status::kNotReady);
  }
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  ExpectWords(ptr, kBlockBytes, kFirst);
}

TEST_P(GraphConformanceTest, RuleC27ExecOutlivesItsGraph) {
  const DevicePtr ptr = NewMemory(kBlockBytes);
  const Stream stream = NewStream();
  Begin(stream);
  Write(ptr, kBlockBytes, kFirst, stream);
  Graph graph;
  ASSERT_EQ(device().StreamEndCapture(stream, &graph), Status::kSuccess);
  const GraphExec exec = NewExec(graph);
  EXPECT_EQ(device().GraphDestroy(graph), Status::kSuccess);
  Replay(exec, 2);
  ExpectWords(ptr, kBlockBytes, kFirst);
}

TEST_P(GraphConformanceTest, RuleC27DestroyedHandlesAreRefused) {
  STRATA_REQUIRE(sim() != nullptr, kNeedsSimulation);
  Graph graph;
  ASSERT_EQ(device().GraphCreate(&graph), Status::kSuccess);
  GraphExec exec;
  ASSERT_EQ(device().GraphInstantiate(&exec, graph, 0), Status::kSuccess);
  ASSERT_EQ(device().GraphDestroy(graph), Status::kSuccess);
  ASSERT_EQ(device().GraphExecDestroy(exec), Status::kSuccess);
  EXPECT_NE(device().GraphDestroy(graph), Status::kSuccess);
  EXPECT_NE(device().GraphExecDestroy(exec), Status::kSuccess);
  EXPECT_NE(device().GraphLaunch(exec, NewStream()), Status::kSuccess);
  GraphExec other;
  EXPECT_NE(device().GraphInstantiate(&other, graph, 0), Status::kSuccess);
  EXPECT_FALSE(other);
}

// Branches run in any order. The node that joins them sees the results of both,
// whichever takes longer.
TEST_P(GraphConformanceTest, RuleC24JoinsWaitForEachBranch) {
  const Stream origin = NewStream();
  const Stream fork = NewStream();
  const Event event = NewEvent();
  const DevicePtr left = NewMemory(kBlockBytes);
  const DevicePtr right = NewMemory(kBlockBytes);
  const DevicePtr left_copy = NewMemory(kBlockBytes);
  const DevicePtr right_copy = NewMemory(kBlockBytes);
  for (const Stream& slow : {origin, fork}) {
    const GraphExec exec = NewExec(Capture(origin, [&] {
      Order(origin, fork, event);
      LongWork(slow);
      Write(left, kBlockBytes, kFirst, origin);
      Write(right, kBlockBytes, kFirst, fork);
      Order(fork, origin, event);
      Copy(left_copy, left, origin);
      Copy(right_copy, right, origin);
      Write(left, kBlockBytes, kSecond, origin);
      Write(right, kBlockBytes, kSecond, origin);
    }));
    Replay(exec, 2);
    ExpectWords(left_copy, kBlockBytes, kFirst);
    ExpectWords(right_copy, kBlockBytes, kFirst);
    ExpectWords(left, kBlockBytes, kSecond);
    ExpectWords(right, kBlockBytes, kSecond);
  }
}

// C20, C24: an exec launched into a capture would become part of its graph. C20
// says that it becomes a node. No known driver does that, in any mode.
TEST_P(GraphConformanceTest, T46LaunchIntoACaptureIsRefused) {
  const Stream stream = NewStream();
  std::atomic<int>* const runs = NewCounter();
  const GraphExec exec = NewExec(Capture(stream, [&] { Count(stream, runs); }));
  for (const CaptureMode mode : kCaptureModes) {
    Begin(stream, mode);
    EXPECT_EQ(device().GraphLaunch(exec, stream),
              Status::kStreamCaptureUnsupported)
        << NameOf(mode);
    EXPECT_EQ(StatusOf(stream), CaptureStatus::kInvalidated);
    ExpectEnd(stream, Status::kStreamCaptureInvalidated);
  }
  EXPECT_EQ(*runs, 0);
  Replay(exec);
  EXPECT_EQ(*runs, 1);
}

TEST_P(GraphConformanceTest, NothingIsNoArgument) {
  const Stream stream = NewStream();
  const Graph graph = NewGraph();
  EXPECT_EQ(device().GraphCreate(nullptr), Status::kInvalidValue);
  EXPECT_EQ(device().GraphInstantiate(nullptr, graph, 0),
            Status::kInvalidValue);
  GraphExec exec;
  EXPECT_EQ(device().GraphInstantiate(&exec, Graph(), 0),
            Status::kInvalidValue);
  EXPECT_FALSE(exec);
  EXPECT_EQ(device().GraphLaunch(GraphExec(), stream), Status::kInvalidValue);
  EXPECT_EQ(device().GraphDestroy(Graph()), Status::kInvalidValue);
  EXPECT_EQ(device().GraphExecDestroy(GraphExec()), Status::kInvalidValue);
  EXPECT_EQ(device().GraphNodePredecessors(GraphNode(), nullptr),
            Status::kInvalidValue);
  EXPECT_EQ(device().StreamIsCapturing(stream, nullptr), Status::kInvalidValue);
  EXPECT_EQ(device().StreamCaptureInfo(stream, nullptr), Status::kInvalidValue);
}

// Addresses are fixed, but the memory mapped behind them may change.
TEST_P(GraphConformanceTest, T74ReplaysFollowTheMapping) {
  STRATA_REQUIRE(device().caps().virtual_memory, "no virtual memory");
  std::size_t granule = 0;
  ASSERT_EQ(device().Granularity({}, false, &granule), Status::kSuccess);
  const AccessDescriptor own{{Location::Kind::kDevice, 0}, Access::kReadWrite};
  DevicePtr range = 0;
  MemHandle first;
  MemHandle second;
  ASSERT_EQ(device().ReserveRange(&range, granule, 0, 0), Status::kSuccess);
  ASSERT_EQ(device().CreateMemory(&first, granule, {}), Status::kSuccess);
  ASSERT_EQ(device().CreateMemory(&second, granule, {}), Status::kSuccess);
  const auto map = [&](MemHandle handle) {
    ASSERT_EQ(device().MapRange(range, granule, 0, handle), Status::kSuccess);
    ASSERT_EQ(device().SetAccess(range, granule, &own, 1), Status::kSuccess);
  };
  const auto unmap = [&] {
    ASSERT_EQ(device().Synchronize(), Status::kSuccess);
    ASSERT_EQ(device().UnmapRange(range, granule), Status::kSuccess);
  };
  const Stream stream = NewStream();
  map(second);
  Write(range, granule, kSecond, stream);
  unmap();
  map(first);
  const GraphExec exec =
      NewExec(Capture(stream, [&] { Write(range, granule, kFirst, stream); }));
  Replay(exec);
  unmap();
  map(second);
  Replay(exec);
  // It wrote to the memory mapped now.
  ExpectWords(range, granule, kFirst);
  unmap();
  EXPECT_EQ(device().ReleaseMemory(first), Status::kSuccess);
  EXPECT_EQ(device().ReleaseMemory(second), Status::kSuccess);
  EXPECT_EQ(device().FreeRange(range, granule), Status::kSuccess);
}

}  // namespace
}  // namespace strata
