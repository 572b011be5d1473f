// Captures with explicit dependencies: cuda_semantics.md C13 and T40, T41.

#include <atomic>
#include <vector>

#include "strata/tests/testing/devices/capture_fixture.h"

namespace strata {
namespace {

class CaptureToGraphConformanceTest : public CaptureFixture {
 protected:
  // Skips if a capture into an existing graph is not supported, as in old
  // drivers.
  void SetUp() override {
    CaptureFixture::SetUp();
    if (IsSkipped()) return;
    const Stream stream = NewStream();
    if (BeginTo(stream, NewGraph(), {}) == Status::kNotSupported) {
      GTEST_SKIP() << "no captures into a graph that there is";
    }
    EXPECT_NE(EndTo(stream), Graph());
  }

  Status BeginTo(const Stream& stream, Graph graph,
                 const std::vector<GraphNode>& dependencies) {
    return device().StreamBeginCaptureToGraph(
        stream, graph, dependencies.data(), dependencies.size(),
        CaptureMode::kRelaxed);
  }

  // The graph, which is the given one.
  Graph EndTo(const Stream& stream) {
    Graph graph;
    EXPECT_EQ(device().StreamEndCapture(stream, &graph), Status::kSuccess);
    return graph;
  }

  Status Update(const Stream& stream, const std::vector<GraphNode>& nodes,
                bool replace) {
    return device().StreamUpdateCaptureDependencies(stream, nodes.data(),
                                                    nodes.size(), replace);
  }
};

INSTANTIATE_TEST_SUITE_P(Devices, CaptureToGraphConformanceTest,
                         ::testing::ValuesIn(AllDevices()), NameOfDevice);

TEST_P(CaptureToGraphConformanceTest, T40CapturesIntoTheGraphGiven) {
  const Stream stream = NewStream();
  const Graph graph = NewGraph();
  std::atomic<int>* const runs = NewCounter();
  ASSERT_EQ(BeginTo(stream, graph, {}), Status::kSuccess);
  EXPECT_EQ(InfoOf(stream).graph == graph, true);
  Count(stream, runs);
  EXPECT_EQ(EndTo(stream) == graph, true);
  Replay(NewExec(graph));
  EXPECT_EQ(*runs, 1);
}

TEST_P(CaptureToGraphConformanceTest, T40AppendsBehindTheNodesGiven) {
  const Stream stream = NewStream();
  const Graph graph = NewGraph();
  const DevicePtr ptr = NewMemory(kBlockBytes);
  const DevicePtr copy = NewMemory(kBlockBytes);
  ASSERT_EQ(BeginTo(stream, graph, {}), Status::kSuccess);
  Write(ptr, kBlockBytes, kFirst, stream);
  const GraphNode write = LastNode(stream);
  EndTo(stream);
  ASSERT_EQ(BeginTo(stream, graph, {write}), Status::kSuccess);
  EXPECT_EQ(LastNode(stream) == write, true);
  Copy(copy, ptr, stream);
  const GraphNode copies = LastNode(stream);
  EndTo(stream);
  ExpectPredecessors(copies, {write});
  Replay(NewExec(graph));
  ExpectWords(copy, kBlockBytes, kFirst);
}

TEST_P(CaptureToGraphConformanceTest, T40NodesOfAnotherGraphAreRefused) {
  const Stream stream = NewStream();
  const DevicePtr ptr = NewMemory(kBlockBytes);
  Begin(stream);
  Write(ptr, kBlockBytes, kFirst, stream);
  const GraphNode foreign = LastNode(stream);
  End(stream);
  const Graph graph = NewGraph();
  EXPECT_EQ(BeginTo(stream, graph, {foreign}), Status::kInvalidValue);
  EXPECT_EQ(StatusOf(stream), CaptureStatus::kNone);
}

// C13 forbids its use until the end; drivers do not check.
TEST_P(CaptureToGraphConformanceTest, RuleC13UnfinishedGraphCanBeInstantiated) {
  const Stream stream = NewStream();
  const Graph graph = NewGraph();
  std::atomic<int>* const runs = NewCounter();
  ASSERT_EQ(BeginTo(stream, graph, {}), Status::kSuccess);
  Count(stream, runs);
  Replay(NewExec(graph));
  EXPECT_EQ(*runs, 1);
  Count(stream, runs);
  EndTo(stream);
  Replay(NewExec(graph));
  EXPECT_EQ(*runs, 3);
}

TEST_P(CaptureToGraphConformanceTest, T41AddingDependencies) {
  const Stream stream = NewStream();
  const DevicePtr ptr = NewMemory(kBlockBytes);
  const DevicePtr other = NewMemory(kBlockBytes);
  Begin(stream);
  Write(ptr, kBlockBytes, kFirst, stream);
  const GraphNode first = LastNode(stream);
  ASSERT_EQ(Update(stream, {}, true), Status::kSuccess);
  Write(other, kBlockBytes, kFirst, stream);
  const GraphNode second = LastNode(stream);
  ASSERT_EQ(Update(stream, {first}, false), Status::kSuccess);
  EXPECT_EQ(InfoOf(stream).dependencies.size(), 2u);
  Copy(ptr, other, stream);
  const GraphNode third = LastNode(stream);
  End(stream);
  ExpectPredecessors(second, {});
  ExpectPredecessors(third, {first, second});
}

// C4: a removed dependency is no fork that must join.
TEST_P(CaptureToGraphConformanceTest, T41ReplacedDependenciesNeedNotJoin) {
  const Stream stream = NewStream();
  const DevicePtr ptr = NewMemory(kBlockBytes);
  std::atomic<int>* const runs = NewCounter();
  Begin(stream);
  Write(ptr, kBlockBytes, kFirst, stream);
  Count(stream, runs);
  ASSERT_EQ(Update(stream, {}, true), Status::kSuccess);
  EXPECT_TRUE(InfoOf(stream).dependencies.empty());
  Count(stream, runs);
  const GraphNode last = LastNode(stream);
  const GraphExec exec = NewExec(End(stream));
  ExpectPredecessors(last, {});
  Replay(exec);
  EXPECT_EQ(*runs, 2);
  ExpectWords(ptr, kBlockBytes, kFirst);
}

TEST_P(CaptureToGraphConformanceTest, T41ReplacedJoinIsStillAJoin) {
  const Stream stream = NewStream();
  const Stream fork = NewStream();
  const Event forked = NewEvent();
  const Event joined = NewEvent();
  std::atomic<int>* const runs = NewCounter();
  Begin(stream);
  Count(stream, runs);
  const GraphNode first = LastNode(stream);
  Order(stream, fork, forked);
  Count(fork, runs);
  Order(fork, stream, joined);
  ASSERT_EQ(Update(stream, {first}, true), Status::kSuccess);
  Replay(NewExec(End(stream)));
  EXPECT_EQ(*runs, 2);
}

TEST_P(CaptureToGraphConformanceTest, T41DependenciesNeedACapture) {
  const Stream stream = NewStream();
  EXPECT_EQ(Update(stream, {}, true), Status::kIllegalState);
}

}  // namespace
}  // namespace strata
