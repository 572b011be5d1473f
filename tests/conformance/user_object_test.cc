// Objects with the lifetime of graphs: cuda_semantics.md C29 and T43, T44.

#include <atomic>
#include <thread>

#include "strata/tests/testing/devices/capture_fixture.h"

namespace strata {
namespace {

class UserObjectConformanceTest : public CaptureFixture {
 protected:
  void SetUp() override {
    CaptureFixture::SetUp();
    if (IsSkipped()) return;
    if (!device().caps().user_objects) GTEST_SKIP() << "no user objects";
    ended_ = NewCounter();
    stream_ = NewStream();
  }

  // An object with one reference. Its end increments `ended`.
  UserObject NewObject() {
    UserObject object;
    const HostFunction end = [](void* argument) {
      ++*static_cast<std::atomic<int>*>(argument);
    };
    EXPECT_EQ(device().UserObjectCreate(&object, ended_, end),
              Status::kSuccess);
    return object;
  }

  // A graph of long work; the caller destroys it.
  Graph SlowGraph() {
    Begin(stream_);
    LongWork(stream_);
    Graph graph;
    EXPECT_EQ(device().StreamEndCapture(stream_, &graph), Status::kSuccess);
    return graph;
  }

  // A graph that holds the only reference to a new object.
  Graph GraphWithObject() {
    const Graph graph = SlowGraph();
    EXPECT_EQ(device().GraphRetainUserObject(graph, NewObject(), true),
              Status::kSuccess);
    return graph;
  }

  GraphExec Instantiate(Graph graph) {
    GraphExec exec;
    EXPECT_EQ(device().GraphInstantiate(&exec, graph, 0), Status::kSuccess);
    return exec;
  }

  void Destroy(Graph graph) {
    EXPECT_EQ(device().GraphDestroy(graph), Status::kSuccess);
  }
  void Destroy(GraphExec exec) {
    EXPECT_EQ(device().GraphExecDestroy(exec), Status::kSuccess);
  }
  void Release(UserObject object) {
    EXPECT_EQ(device().UserObjectRelease(object), Status::kSuccess);
  }

  // No call waits for the end of an object: polls until the end, for far longer
  // than it may take.
  void ExpectEnded() {
    for (int i = 0; i < 1'000'000 && *ended_ == 0; ++i) {
      ASSERT_EQ(device().Synchronize(), Status::kSuccess);
      std::this_thread::yield();
    }
    EXPECT_EQ(*ended_, 1);
  }
  void ExpectAlive() {
    ASSERT_EQ(device().Synchronize(), Status::kSuccess);
    EXPECT_EQ(*ended_, 0);
  }

  std::atomic<int>* ended_ = nullptr;
  Stream stream_;
};

INSTANTIATE_TEST_SUITE_P(Devices, UserObjectConformanceTest,
                         ::testing::ValuesIn(AllDevices()), NameOfDevice);

TEST_P(UserObjectConformanceTest, T44LastReleaseEndsAnObject) {
  const UserObject object = NewObject();
  ExpectAlive();
  Release(object);
  ExpectEnded();
}

TEST_P(UserObjectConformanceTest, T44GraphAndExecsHoldAnObject) {
  const Graph graph = GraphWithObject();
  const GraphExec first = Instantiate(graph);
  const GraphExec second = Instantiate(graph);
  ExpectAlive();
  Destroy(graph);
  ExpectAlive();
  Destroy(first);
  ExpectAlive();
  Destroy(second);
  ExpectEnded();
}

TEST_P(UserObjectConformanceTest, T44GraphHoldsAnObjectLongerThanItsExec) {
  const Graph graph = GraphWithObject();
  Destroy(Instantiate(graph));
  ExpectAlive();
  Destroy(graph);
  ExpectEnded();
}

TEST_P(UserObjectConformanceTest, RuleC29RetainingCanKeepTheCallersReference) {
  const UserObject object = NewObject();
  const Graph graph = SlowGraph();
  ASSERT_EQ(device().GraphRetainUserObject(graph, object, false),
            Status::kSuccess);
  Destroy(graph);
  ExpectAlive();
  Release(object);
  ExpectEnded();
}

TEST_P(UserObjectConformanceTest, RuleC29GraphKeepsWhatTheCallerReleases) {
  const UserObject object = NewObject();
  const Graph graph = SlowGraph();
  ASSERT_EQ(device().GraphRetainUserObject(graph, object, false),
            Status::kSuccess);
  Release(object);
  ExpectAlive();
  Destroy(graph);
  ExpectEnded();
}

TEST_P(UserObjectConformanceTest, RuleC29TwoGraphsShareAnObject) {
  const UserObject object = NewObject();
  const Graph first = SlowGraph();
  const Graph second = SlowGraph();
  ASSERT_EQ(device().GraphRetainUserObject(first, object, false),
            Status::kSuccess);
  ASSERT_EQ(device().GraphRetainUserObject(second, object, true),
            Status::kSuccess);
  Destroy(first);
  ExpectAlive();
  Destroy(second);
  ExpectEnded();
}

// Objects can be added to the graph of an active capture (C11).
TEST_P(UserObjectConformanceTest, RuleC29CapturedGraphTakesObjects) {
  const UserObject object = NewObject();
  Begin(stream_);
  EXPECT_EQ(device().GraphRetainUserObject(InfoOf(stream_).graph, object, true),
            Status::kSuccess);
  LongWork(stream_);
  Graph graph;
  ASSERT_EQ(device().StreamEndCapture(stream_, &graph), Status::kSuccess);
  const GraphExec exec = Instantiate(graph);
  Destroy(graph);
  ExpectAlive();
  Destroy(exec);
  ExpectEnded();
}

// C33: a failed capture leaves no state.
TEST_P(UserObjectConformanceTest, RuleC29FailedCaptureLetsItsObjectsGo) {
  const UserObject object = NewObject();
  Begin(stream_);
  EXPECT_EQ(device().GraphRetainUserObject(InfoOf(stream_).graph, object, true),
            Status::kSuccess);
  EXPECT_EQ(device().StreamQuery(stream_), Status::kStreamCaptureUnsupported);
  ExpectEnd(stream_, Status::kStreamCaptureInvalidated);
  ExpectEnded();
}

// C27.
TEST_P(UserObjectConformanceTest, T43ObjectOutlivesTheLaunchesUnderWay) {
  const Graph graph = GraphWithObject();
  const GraphExec exec = Instantiate(graph);
  Launch(exec, stream_);
  Destroy(exec);
  Destroy(graph);
  if (CanHold()) {
    EXPECT_EQ(*ended_, 0);
    EXPECT_EQ(device().StreamQuery(stream_), Status::kNotReady);
    EXPECT_EQ(*ended_, 0);
  }
  ASSERT_EQ(device().StreamSynchronize(stream_), Status::kSuccess);
  ExpectEnded();
}

// C28: an update replaces the objects of the exec by those of the other graph.
TEST_P(UserObjectConformanceTest, RuleC29UpdateLetsTheOldObjectsGo) {
  const Graph old_graph = GraphWithObject();
  const GraphExec exec = Instantiate(old_graph);
  Destroy(old_graph);
  const Graph new_graph = SlowGraph();
  ExpectAlive();
  ASSERT_EQ(device().GraphExecUpdate(exec, new_graph), Status::kSuccess);
  ExpectEnded();
  Destroy(exec);
  Destroy(new_graph);
}

TEST_P(UserObjectConformanceTest, RuleC29UpdatedExecHoldsTheNewObjects) {
  const Graph old_graph = SlowGraph();
  const GraphExec exec = Instantiate(old_graph);
  const Graph new_graph = GraphWithObject();
  ASSERT_EQ(device().GraphExecUpdate(exec, new_graph), Status::kSuccess);
  Destroy(new_graph);
  Destroy(old_graph);
  ExpectAlive();
  Destroy(exec);
  ExpectEnded();
}

// The destructor of an object may not call the device (S11).
TEST_P(UserObjectConformanceTest, RuleC29EndsMayNotCallTheDevice) {
  STRATA_REQUIRE(sim() != nullptr, "a driver may lock up");
  struct Call {
    Device* device = nullptr;
    std::atomic<int>* ends = nullptr;
    Status status = Status::kSuccess;
  } call;
  call.device = &device();
  call.ends = ended_;
  const HostFunction end = [](void* argument) {
    auto* its = static_cast<Call*>(argument);
    its->status = its->device->Synchronize();
    ++*its->ends;
  };
  UserObject object;
  ASSERT_EQ(device().UserObjectCreate(&object, &call, end), Status::kSuccess);
  Release(object);
  ExpectEnded();
  EXPECT_EQ(call.status, Status::kNotPermitted);
}

TEST_P(UserObjectConformanceTest, RuleC29ObjectsNeedAnEnd) {
  UserObject object;
  EXPECT_EQ(device().UserObjectCreate(&object, ended_, nullptr),
            Status::kInvalidValue);
  EXPECT_FALSE(object);
}

}  // namespace
}  // namespace strata
