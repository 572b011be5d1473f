// Graph updates: cuda_semantics.md C28 and T45.

#include <atomic>
#include <cstdint>

#include "strata/tests/testing/devices/capture_fixture.h"

namespace strata {
namespace {

class GraphUpdateConformanceTest : public CaptureFixture {
 protected:
  void SetUp() override {
    CaptureFixture::SetUp();
    if (IsSkipped()) return;
    stream_ = NewStream();
    old_ptr_ = NewMemory(kBlockBytes);
    new_ptr_ = NewMemory(kBlockBytes);
    for (const DevicePtr ptr : {old_ptr_, new_ptr_}) {
      Write(ptr, kBlockBytes, kSecond, stream_);
    }
    EXPECT_EQ(device().StreamSynchronize(stream_), Status::kSuccess);
  }

  Graph Writing(DevicePtr ptr) {
    return Capture(stream_, [&] { Write(ptr, kBlockBytes, kFirst, stream_); });
  }

  // An update of the exec of Writing(old_ptr) fails without effect.
  void ExpectNoUpdate(Graph graph) {
    const GraphExec exec = NewExec(Writing(old_ptr_));
    EXPECT_EQ(device().GraphExecUpdate(exec, graph),
              Status::kGraphExecUpdateFailure);
    Replay(exec);
    ExpectWords(old_ptr_, kBlockBytes, kFirst);
    ExpectWords(new_ptr_, kBlockBytes, kSecond);
  }

  Stream stream_;
  // Full of kSecond; Writing() stores kFirst.
  DevicePtr old_ptr_ = 0;
  DevicePtr new_ptr_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Devices, GraphUpdateConformanceTest,
                         ::testing::ValuesIn(AllDevices()), NameOfDevice);

TEST_P(GraphUpdateConformanceTest, T45UpdateChangesTheAddresses) {
  const GraphExec exec = NewExec(Writing(old_ptr_));
  ASSERT_EQ(device().GraphExecUpdate(exec, Writing(new_ptr_)),
            Status::kSuccess);
  Replay(exec);
  ExpectWords(old_ptr_, kBlockBytes, kSecond);
  ExpectWords(new_ptr_, kBlockBytes, kFirst);
}

TEST_P(GraphUpdateConformanceTest, T45UpdateChangesTheAddressesOfCopies) {
  const DevicePtr target = NewMemory(kBlockBytes);
  Write(new_ptr_, kBlockBytes, kFirst, stream_);
  const GraphExec exec =
      NewExec(Capture(stream_, [&] { Copy(target, old_ptr_, stream_); }));
  Replay(exec);
  ExpectWords(target, kBlockBytes, kSecond);
  const Graph other =
      Capture(stream_, [&] { Copy(target, new_ptr_, stream_); });
  ASSERT_EQ(device().GraphExecUpdate(exec, other), Status::kSuccess);
  Replay(exec);
  ExpectWords(target, kBlockBytes, kFirst);
}

TEST_P(GraphUpdateConformanceTest, T45UpdateChangesHostFunctions) {
  std::atomic<int>* const old_runs = NewCounter();
  std::atomic<int>* const new_runs = NewCounter();
  const GraphExec exec =
      NewExec(Capture(stream_, [&] { Count(stream_, old_runs); }));
  const Graph other = Capture(stream_, [&] { Count(stream_, new_runs); });
  ASSERT_EQ(device().GraphExecUpdate(exec, other), Status::kSuccess);
  Replay(exec);
  EXPECT_EQ(*old_runs, 0);
  EXPECT_EQ(*new_runs, 1);
}

// The exec does not depend on the other graph.
TEST_P(GraphUpdateConformanceTest, T45OtherGraphMayGoAfterTheUpdate) {
  const GraphExec exec = NewExec(Writing(old_ptr_));
  Begin(stream_);
  Write(new_ptr_, kBlockBytes, kFirst, stream_);
  Graph other;
  ASSERT_EQ(device().StreamEndCapture(stream_, &other), Status::kSuccess);
  ASSERT_EQ(device().GraphExecUpdate(exec, other), Status::kSuccess);
  ASSERT_EQ(device().GraphDestroy(other), Status::kSuccess);
  Replay(exec);
  ExpectWords(new_ptr_, kBlockBytes, kFirst);
}

TEST_P(GraphUpdateConformanceTest, RuleC28LaunchesUnderWayKeepTheAddresses) {
  const GraphExec exec = NewExec(Writing(old_ptr_));
  const Graph other = Writing(new_ptr_);
  LongWork(stream_);
  Launch(exec, stream_);
  ASSERT_EQ(device().GraphExecUpdate(exec, other), Status::kSuccess);
  ASSERT_EQ(device().StreamSynchronize(stream_), Status::kSuccess);
  ExpectWords(old_ptr_, kBlockBytes, kFirst);
  ExpectWords(new_ptr_, kBlockBytes, kSecond);
}

TEST_P(GraphUpdateConformanceTest, T45MoreNodesAreNoUpdate) {
  ExpectNoUpdate(Capture(stream_, [&] {
    Write(new_ptr_, kBlockBytes, kFirst, stream_);
    Write(new_ptr_, kBlockBytes, kFirst, stream_);
  }));
}

TEST_P(GraphUpdateConformanceTest, T45FewerNodesAreNoUpdate) {
  ExpectNoUpdate(Capture(stream_, [] {}));
}

TEST_P(GraphUpdateConformanceTest, T45OtherKindsOfNodesAreNoUpdate) {
  ExpectNoUpdate(Capture(stream_, [&] {
    EXPECT_EQ(device().MemsetAsync(new_ptr_, 0x11, kBlockBytes, stream_),
              Status::kSuccess);
  }));
}

// Equal nodes, in a chain and in parallel.
TEST_P(GraphUpdateConformanceTest, T45OtherEdgesAreNoUpdate) {
  const Stream fork = NewStream();
  const Event event = NewEvent();
  const GraphExec exec = NewExec(Capture(stream_, [&] {
    Write(old_ptr_, kBlockBytes, kFirst, stream_);
    Write(old_ptr_, kBlockBytes, kFirst, stream_);
  }));
  const Graph other = Capture(stream_, [&] {
    Order(stream_, fork, event);
    Write(new_ptr_, kBlockBytes, kFirst, stream_);
    Write(new_ptr_, kBlockBytes, kFirst, fork);
    Order(fork, stream_, event);
  });
  EXPECT_EQ(device().GraphExecUpdate(exec, other),
            Status::kGraphExecUpdateFailure);
  Replay(exec);
  ExpectWords(old_ptr_, kBlockBytes, kFirst);
  ExpectWords(new_ptr_, kBlockBytes, kSecond);
}

}  // namespace
}  // namespace strata
