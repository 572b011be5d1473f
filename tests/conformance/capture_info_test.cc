// Queries of captures, and several captures at once: cuda_semantics.md C9-C11
// and T36, T38.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <set>
#include <thread>
#include <vector>

#include "strata/tests/testing/devices/capture_fixture.h"

namespace strata {
namespace {

using CaptureInfoConformanceTest = CaptureFixture;

INSTANTIATE_TEST_SUITE_P(Devices, CaptureInfoConformanceTest,
                         ::testing::ValuesIn(AllDevices()), NameOfDevice);

// C10.
TEST_P(CaptureInfoConformanceTest, T36EachCaptureHasAnIdOfItsOwn) {
  const Stream stream = NewStream();
  std::set<std::uint64_t> ids;
  for (int i = 0; i < 4; ++i) {
    Begin(stream);
    EXPECT_TRUE(ids.insert(InfoOf(stream).id).second);
    End(stream);
  }
}

TEST_P(CaptureInfoConformanceTest, T36IdIsConstantAndSeenByAllThreads) {
  const Stream stream = NewStream();
  const DevicePtr ptr = NewMemory(kBlockBytes);
  Begin(stream);
  const std::uint64_t id = InfoOf(stream).id;
  Write(ptr, kBlockBytes, kFirst, stream);
  EXPECT_EQ(InfoOf(stream).id, id);
  Elsewhere([&] {
    EXPECT_EQ(StatusOf(stream), CaptureStatus::kActive);
    EXPECT_EQ(InfoOf(stream).id, id);
  });
  End(stream);
}

TEST_P(CaptureInfoConformanceTest, RuleC11InfoTellsGraphAndDependencies) {
  const Stream stream = NewStream();
  const DevicePtr ptr = NewMemory(kBlockBytes);
  EXPECT_EQ(InfoOf(stream).status, CaptureStatus::kNone);
  Begin(stream);
  const CaptureInfo before = InfoOf(stream);
  EXPECT_EQ(before.status, CaptureStatus::kActive);
  EXPECT_TRUE(before.dependencies.empty());
  Write(ptr, kBlockBytes, kFirst, stream);
  EXPECT_EQ(InfoOf(stream).dependencies.size(), 1u);
  EXPECT_EQ(InfoOf(stream).graph == before.graph, true);
  const Graph graph = End(stream);
  EXPECT_EQ(graph == before.graph, true);
  EXPECT_EQ(InfoOf(stream).status, CaptureStatus::kNone);
}

// C9: captures are independent of each other.
TEST_P(CaptureInfoConformanceTest, T38TwoThreadsCaptureAtOnce) {
  const Stream here = NewStream();
  const Stream there = NewStream();
  std::atomic<int>* const runs_here = NewCounter();
  std::atomic<int>* const runs_there = NewCounter();
  Graph graph_there;
  Begin(here, CaptureMode::kThreadLocal);
  Count(here, runs_here);
  Elsewhere([&] {
    Begin(there, CaptureMode::kThreadLocal);
    EXPECT_NE(InfoOf(here).id, InfoOf(there).id);
    Count(there, runs_there);
    graph_there = End(there);
  });
  Count(here, runs_here);
  const Graph graph_here = End(here);
  Replay(NewExec(graph_there));
  EXPECT_EQ(*runs_here, 0);
  EXPECT_EQ(*runs_there, 1);
  Replay(NewExec(graph_here));
  EXPECT_EQ(*runs_here, 2);
}

TEST_P(CaptureInfoConformanceTest, T38ThreadsCaptureAndReplayAtOnce) {
  STRATA_REQUIRE(!GetParam().faulted, "calls that fail are for one thread");
  constexpr int kTimes = 8;
  std::vector<std::atomic<int>*> runs;
  std::vector<Stream> streams;
  for (int i = 0; i < 3; ++i) {
    runs.push_back(NewCounter());
    streams.push_back(NewStream());
  }
  const auto capture_and_replay = [&](const Stream& stream,
                                      std::atomic<int>* counter) {
    Graph graph;
    GraphExec exec;
    EXPECT_EQ(device().StreamBeginCapture(stream, CaptureMode::kThreadLocal),
              Status::kSuccess);
    Count(stream, counter);
    EXPECT_EQ(device().StreamEndCapture(stream, &graph), Status::kSuccess);
    EXPECT_EQ(device().GraphInstantiate(&exec, graph, 0), Status::kSuccess);
    Launch(exec, stream);
    EXPECT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
    EXPECT_EQ(device().GraphExecDestroy(exec), Status::kSuccess);
    EXPECT_EQ(device().GraphDestroy(graph), Status::kSuccess);
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    threads.emplace_back([&, i] {
      for (int j = 0; j < kTimes; ++j) capture_and_replay(streams[i], runs[i]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::atomic<int>* counter : runs) EXPECT_EQ(*counter, kTimes);
}

TEST_P(CaptureInfoConformanceTest, RuleC9OneThreadCapturesTwiceAtOnce) {
  const Stream first = NewStream();
  const Stream second = NewStream();
  std::atomic<int>* const first_runs = NewCounter();
  std::atomic<int>* const second_runs = NewCounter();
  Begin(first);
  Begin(second);
  Count(first, first_runs);
  Count(second, second_runs);
  Count(second, second_runs);
  const Graph first_graph = End(first);
  const Graph second_graph = End(second);
  Replay(NewExec(first_graph));
  EXPECT_EQ(*first_runs, 1);
  EXPECT_EQ(*second_runs, 0);
  Replay(NewExec(second_graph));
  EXPECT_EQ(*second_runs, 2);
}

}  // namespace
}  // namespace strata
