// Graphs that take the place of others: cuda_semantics.md C28 and T45.

#include <atomic>
#include <cstdint>

#include "strata/tests/testing/capture_fixture.h"

namespace strata {
namespace {

class GraphUpdateConformanceTest : public CaptureFixture {
 protected:
  void SetUp() override {
    CaptureFixture::SetUp();
    if (IsSkipped()) return;
    stream = NewStream();
    old_ptr = NewMemory(kBlockBytes);
    new_ptr = NewMemory(kBlockBytes);
    for (const DevicePtr ptr : {old_ptr, new_ptr}) {
      Write(ptr, kBlockBytes, kSecond, stream);
    }
    EXPECT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  }

  Graph Writing(DevicePtr ptr) {
    return Capture(stream, [&] { Write(ptr, kBlockBytes, kFirst, stream); });
  }

  // An update of the exec of Writing(old_ptr) fails and changes nothing.
  void ExpectNoUpdate(Graph graph) {
    const GraphExec exec = NewExec(Writing(old_ptr));
    EXPECT_EQ(device().GraphExecUpdate(exec, graph),
              Status::kGraphExecUpdateFailure);
    Replay(exec);
    ExpectWords(old_ptr, kBlockBytes, kFirst);
    ExpectWords(new_ptr, kBlockBytes, kSecond);
  }

  Stream stream;
  // Full of kSecond; Writing() stores kFirst.
  DevicePtr old_ptr = 0;
  DevicePtr new_ptr = 0;
};

INSTANTIATE_TEST_SUITE_P(Devices, GraphUpdateConformanceTest,
                         ::testing::ValuesIn(AllDevices()), NameOfDevice);

TEST_P(GraphUpdateConformanceTest, T45UpdateChangesTheAddresses) {
  const GraphExec exec = NewExec(Writing(old_ptr));
  ASSERT_EQ(device().GraphExecUpdate(exec, Writing(new_ptr)), Status::kSuccess);
  Replay(exec);
  ExpectWords(old_ptr, kBlockBytes, kSecond);
  ExpectWords(new_ptr, kBlockBytes, kFirst);
}

TEST_P(GraphUpdateConformanceTest, T45UpdateChangesTheAddressesOfCopies) {
  const DevicePtr target = NewMemory(kBlockBytes);
  Write(new_ptr, kBlockBytes, kFirst, stream);
  const GraphExec exec =
      NewExec(Capture(stream, [&] { Copy(target, old_ptr, stream); }));
  Replay(exec);
  ExpectWords(target, kBlockBytes, kSecond);
  const Graph other = Capture(stream, [&] { Copy(target, new_ptr, stream); });
  ASSERT_EQ(device().GraphExecUpdate(exec, other), Status::kSuccess);
  Replay(exec);
  ExpectWords(target, kBlockBytes, kFirst);
}

TEST_P(GraphUpdateConformanceTest, T45UpdateChangesHostFunctions) {
  std::atomic<int>* const old_runs = NewCounter();
  std::atomic<int>* const new_runs = NewCounter();
  const GraphExec exec =
      NewExec(Capture(stream, [&] { Count(stream, old_runs); }));
  const Graph other = Capture(stream, [&] { Count(stream, new_runs); });
  ASSERT_EQ(device().GraphExecUpdate(exec, other), Status::kSuccess);
  Replay(exec);
  EXPECT_EQ(*old_runs, 0);
  EXPECT_EQ(*new_runs, 1);
}

// The exec does not become the other graph's.
TEST_P(GraphUpdateConformanceTest, T45OtherGraphMayGoAfterTheUpdate) {
  const GraphExec exec = NewExec(Writing(old_ptr));
  Begin(stream);
  Write(new_ptr, kBlockBytes, kFirst, stream);
  Graph other;
  ASSERT_EQ(device().StreamEndCapture(stream, &other), Status::kSuccess);
  ASSERT_EQ(device().GraphExecUpdate(exec, other), Status::kSuccess);
  ASSERT_EQ(device().GraphDestroy(other), Status::kSuccess);
  Replay(exec);
  ExpectWords(new_ptr, kBlockBytes, kFirst);
}

TEST_P(GraphUpdateConformanceTest, RuleC28LaunchesUnderWayKeepTheAddresses) {
  const GraphExec exec = NewExec(Writing(old_ptr));
  const Graph other = Writing(new_ptr);
  LongWork(stream);
  Launch(exec, stream);
  ASSERT_EQ(device().GraphExecUpdate(exec, other), Status::kSuccess);
  ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  ExpectWords(old_ptr, kBlockBytes, kFirst);
  ExpectWords(new_ptr, kBlockBytes, kSecond);
}

TEST_P(GraphUpdateConformanceTest, T45MoreNodesAreNoUpdate) {
  ExpectNoUpdate(Capture(stream, [&] {
    Write(new_ptr, kBlockBytes, kFirst, stream);
    Write(new_ptr, kBlockBytes, kFirst, stream);
  }));
}

TEST_P(GraphUpdateConformanceTest, T45FewerNodesAreNoUpdate) {
  ExpectNoUpdate(Capture(stream, [] {}));
}

TEST_P(GraphUpdateConformanceTest, T45OtherKindsOfNodesAreNoUpdate) {
  ExpectNoUpdate(Capture(stream, [&] {
    EXPECT_EQ(device().MemsetAsync(new_ptr, 0x11, kBlockBytes, stream),
              Status::kSuccess);
  }));
}

// The same nodes, in a chain and side by side.
TEST_P(GraphUpdateConformanceTest, T45OtherEdgesAreNoUpdate) {
  const Stream fork = NewStream();
  const Event event = NewEvent();
  const GraphExec exec = NewExec(Capture(stream, [&] {
    Write(old_ptr, kBlockBytes, kFirst, stream);
    Write(old_ptr, kBlockBytes, kFirst, stream);
  }));
  const Graph other = Capture(stream, [&] {
    Order(stream, fork, event);
    Write(new_ptr, kBlockBytes, kFirst, stream);
    Write(new_ptr, kBlockBytes, kFirst, fork);
    Order(fork, stream, event);
  });
  EXPECT_EQ(device().GraphExecUpdate(exec, other),
            Status::kGraphExecUpdateFailure);
  Replay(exec);
  ExpectWords(old_ptr, kBlockBytes, kFirst);
  ExpectWords(new_ptr, kBlockBytes, kSecond);
}

}  // namespace
}  // namespace strata
