#include "strata/tests/testing/devices/capture_fixture.h"

#include <algorithm>
#include <ostream>
#include <thread>

namespace strata {

const char* NameOf(CaptureMode mode) {
  switch (mode) {
    case CaptureMode::kGlobal:
      return "global";
    case CaptureMode::kThreadLocal:
      return "thread_local";
    case CaptureMode::kRelaxed:
      return "relaxed";
  }
  return "?";
}

void PrintTo(CaptureStatus status, std::ostream* out) {
  switch (status) {
    case CaptureStatus::kNone:
      *out << "none";
      return;
    case CaptureStatus::kActive:
      *out << "active";
      return;
    case CaptureStatus::kInvalidated:
      *out << "invalidated";
      return;
  }
  *out << "unknown status " << static_cast<int>(status);
}

void CaptureFixture::SetUp() {
  DeviceTest::SetUp();
  if (IsSkipped()) return;
  if (!device().caps().capture || !device().caps().graphs) {
    GTEST_SKIP() << "no capture of streams";
  }
}

void CaptureFixture::TearDown() {
  for (const Stream& stream : begun_) {
    CaptureStatus status = CaptureStatus::kNone;
    if (device(stream.device).StreamIsCapturing(stream, &status) ==
            Status::kSuccess &&
        status != CaptureStatus::kNone) {
      ADD_FAILURE() << "stream " << stream.uid << " is still capturing";
      Abandon(stream);
    }
  }
  DeviceTest::TearDown();
}

void CaptureFixture::Begin(const Stream& stream, CaptureMode mode) {
  EXPECT_EQ(device(stream.device).StreamBeginCapture(stream, mode),
            Status::kSuccess);
  begun_.push_back(stream);
}

Graph CaptureFixture::End(const Stream& stream) {
  Graph graph;
  EXPECT_EQ(device(stream.device).StreamEndCapture(stream, &graph),
            Status::kSuccess);
  EXPECT_TRUE(graph);
  std::erase(begun_, stream);
  const int ordinal = stream.device;
  AtEnd([this, ordinal, graph] {
    EXPECT_EQ(device(ordinal).GraphDestroy(graph), Status::kSuccess);
  });
  return graph;
}

void CaptureFixture::ExpectEnd(const Stream& stream, Status status) {
  Graph graph;
  EXPECT_EQ(device(stream.device).StreamEndCapture(stream, &graph), status);
  EXPECT_FALSE(graph);
  EXPECT_EQ(StatusOf(stream), CaptureStatus::kNone);
  std::erase(begun_, stream);
}

Status CaptureFixture::Abandon(const Stream& stream) {
  Graph graph;
  const Status status = device(stream.device).StreamEndCapture(stream, &graph);
  if (status == Status::kSuccess) {
    EXPECT_EQ(device(stream.device).GraphDestroy(graph), Status::kSuccess);
  }
  std::erase(begun_, stream);
  return status;
}

Graph CaptureFixture::Capture(const Stream& stream,
                              const std::function<void()>& body) {
  Begin(stream);
  body();
  return End(stream);
}

CaptureStatus CaptureFixture::StatusOf(const Stream& stream) {
  auto status = static_cast<CaptureStatus>(-1);
  EXPECT_EQ(device(stream.device).StreamIsCapturing(stream, &status),
            Status::kSuccess);
  return status;
}

CaptureInfo CaptureFixture::InfoOf(const Stream& stream) {
  CaptureInfo info;
  EXPECT_EQ(device(stream.device).StreamCaptureInfo(stream, &info),
            Status::kSuccess);
  return info;
}

GraphNode CaptureFixture::LastNode(const Stream& stream) {
  const std::vector<GraphNode> nodes = InfoOf(stream).dependencies;
  EXPECT_EQ(nodes.size(), 1u);
  return nodes.empty() ? GraphNode() : nodes.front();
}

void CaptureFixture::ExpectPredecessors(GraphNode node,
                                        std::vector<GraphNode> nodes) {
  std::vector<GraphNode> found;
  EXPECT_EQ(device().GraphNodePredecessors(node, &found), Status::kSuccess);
  const auto by_value = [](GraphNode a, GraphNode b) {
    return std::less<void*>()(a.value, b.value);
  };
  std::sort(found.begin(), found.end(), by_value);
  std::sort(nodes.begin(), nodes.end(), by_value);
  EXPECT_EQ(found == nodes, true) << found.size() << " predecessors, not the "
                                  << nodes.size() << " expected";
}

Graph CaptureFixture::NewGraph() {
  Graph graph;
  EXPECT_EQ(device().GraphCreate(&graph), Status::kSuccess);
  AtEnd([this, graph] {
    EXPECT_EQ(device().GraphDestroy(graph), Status::kSuccess);
  });
  return graph;
}

GraphExec CaptureFixture::NewExec(Graph graph, unsigned flags) {
  GraphExec exec;
  EXPECT_EQ(device().GraphInstantiate(&exec, graph, flags), Status::kSuccess);
  AtEnd([this, exec] {
    EXPECT_EQ(device().GraphExecDestroy(exec), Status::kSuccess);
  });
  return exec;
}

void CaptureFixture::Launch(GraphExec exec, const Stream& stream) {
  EXPECT_EQ(device(stream.device).GraphLaunch(exec, stream), Status::kSuccess);
}

void CaptureFixture::Replay(GraphExec exec, int times) {
  const Stream stream = NewStream();
  for (int i = 0; i < times; ++i) Launch(exec, stream);
  EXPECT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
}

void CaptureFixture::Order(const Stream& before, const Stream& after,
                           Event event) {
  EXPECT_EQ(device(before.device).EventRecord(event, before, 0),
            Status::kSuccess);
  EXPECT_EQ(device(after.device).StreamWaitEvent(after, event, 0),
            Status::kSuccess);
}

void CaptureFixture::Copy(DevicePtr target, DevicePtr source,
                          const Stream& stream) {
  EXPECT_EQ(
      device(stream.device).MemcpyAsync(target, source, kBlockBytes, stream),
      Status::kSuccess);
}

void CaptureFixture::Copy(std::uint64_t* target, DevicePtr source,
                          const Stream& stream) {
  EXPECT_EQ(device(stream.device)
                .MemcpyAsync(reinterpret_cast<DevicePtr>(target), source,
                             sizeof(*target), stream),
            Status::kSuccess);
}

void CaptureFixture::Count(const Stream& stream, std::atomic<int>* counter) {
  const HostFunction add = [](void* argument) {
    ++*static_cast<std::atomic<int>*>(argument);
  };
  EXPECT_EQ(device(stream.device).LaunchHostFunc(stream, add, counter),
            Status::kSuccess);
}

void CaptureFixture::Elsewhere(const std::function<void()>& function) {
  std::thread(function).join();
}

}  // namespace strata
