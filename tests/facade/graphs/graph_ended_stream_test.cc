// The facade does not query the captures of ended streams: another stream may
// have their handles, or none.

#include <gtest/gtest.h>

#include <string>

#include "strata/tests/facade/graphs/graph_fixture.h"

namespace strata {
namespace {

class GraphEndedStreamTest : public GraphFixture {
 protected:
  // During a capture of `capturing`, `act` makes no call on `gone`.
  template <class Act>
  void DuringCapture(Stream capturing, Stream gone, Act act) {
    CaptureGuard guard(facade(), capturing);
    const CallLog log(device());
    act();
    EXPECT_EQ(log.On(gone), 0U);
    EXPECT_EQ(log.Failed(), 0U);
    Finish(guard);
  }
  void End(Stream stream) {
    facade().StreamDestroyed(stream);
    Destroy(stream);
  }
};

// The announcement names no stream, and the first request is of a fork.
TEST_F(GraphEndedStreamTest, AForkThatEndsLeavesItsCapture) {
  Build();
  const Stream origin = NewStream();
  const Stream fork = NewStream();
  facade().Wrap(origin.handle, 0);
  const GraphPoolId id = facade().PrepareMemoryPoolForCUDAGraph();
  ASSERT_EQ(device().StreamBeginCapture(origin, CaptureMode::kThreadLocal),
            Status::kSuccess);
  Join(origin, fork);
  const AllocationPtr of_fork = Alloc(Mebibytes(1), fork);
  Join(fork, origin);
  End(fork);
  AllocationPtr inside = Alloc(Mebibytes(1), origin);
  const void* const captured = inside->data();
  Use(inside, origin);
  inside.reset();
  Graph graph;
  ASSERT_EQ(device().StreamEndCapture(origin, &graph), Status::kSuccess);
  facade().KeepForGraph(id, 0, graph);
  facade().RemoveMemoryPoolOfCUDAGraph(id);
  // The graph holds its memory.
  EXPECT_NE(Alloc(Mebibytes(1), origin)->data(), captured);
  EXPECT_EQ(device().GraphDestroy(graph), Status::kSuccess);
}

TEST_F(GraphEndedStreamTest, AFailedQueryLeavesACapture) {
  Build();
  const Stream stream = NewStream();
  CaptureGuard guard(facade(), stream);
  FaultRule rule;
  rule.call = DeviceCall::kStreamIsCapturing;
  rule.nth = 1;
  device().AddFault(rule);
  facade().CaptureEnded(guard.pool());
  device().ClearFaults();
  AllocationPtr inside = Alloc(Mebibytes(1), stream);
  const void* const captured = inside->data();
  Use(inside, stream);
  inside.reset();
  Finish(guard);
  EXPECT_NE(Alloc(Mebibytes(1), stream)->data(), captured);
}

TEST_F(GraphEndedStreamTest, ByAFreeOfWhatItAllocated) {
  for (const char* strategy :
       {"auto_growth", "bfc", "cuda_malloc_async", "direct"}) {
    Build(std::string("allocator_strategy=") + strategy);
    const Stream gone = NewStream();
    AllocationPtr allocation = Alloc(Mebibytes(1), gone);
    End(gone);
    DuringCapture(NewStream(), gone, [&] { allocation.reset(); });
    DropGraphs();
    facade().Release(Here());
    EXPECT_EQ(Reserved(), 0U) << strategy;
  }
}

TEST_F(GraphEndedStreamTest, ByAFreeOfWhatItAllocatedInACapture) {
  Build();
  const Stream gone = NewStream();
  AllocationPtr inside;
  {
    CaptureGuard guard(facade(), gone);
    inside = Alloc(Mebibytes(1), gone);
    Finish(guard);
  }
  End(gone);
  DuringCapture(NewStream(), gone, [&] { inside.reset(); });
}

TEST_F(GraphEndedStreamTest, ByADeferredFreeThatIsTakenIn) {
  Build("allocator_strategy=direct");
  const Stream gone = NewStream();
  const Stream user = NewStream();
  AllocationPtr marked = Alloc(Mebibytes(1), gone);
  facade().RecordStream(marked, user);
  marked.reset();
  End(gone);
  DuringCapture(NewStream(), gone, [&] {
    Alloc(Mebibytes(1), user).reset();  // a miss drains
  });
}

// By a request in another capture, which looks up its capture.
TEST_F(GraphEndedStreamTest, ForACaptureThatWasAnnouncedAndNeverBegan) {
  Build();
  const Stream gone = NewStream();
  const GraphPoolId id = facade().PrepareMemoryPoolForCUDAGraph(0, gone);
  End(gone);
  const Stream other = NewStream();
  DuringCapture(other, gone, [&] { Alloc(Mebibytes(1), other).reset(); });
  facade().RemoveMemoryPoolOfCUDAGraph(id);
}

// Its end was not announced.
TEST_F(GraphEndedStreamTest, ForACaptureWithoutAnAllocation) {
  Build();
  const Stream gone = NewStream();
  const Stream other = NewStream();
  const GraphPoolId id = facade().PrepareMemoryPoolForCUDAGraph(0, gone);
  ASSERT_EQ(device().StreamBeginCapture(gone, CaptureMode::kRelaxed),
            Status::kSuccess);
  Graph graph;
  ASSERT_EQ(device().StreamEndCapture(gone, &graph), Status::kSuccess);
  EXPECT_EQ(device().GraphDestroy(graph), Status::kSuccess);
  End(gone);
  Alloc(Mebibytes(2), other).reset();
  EXPECT_GT(facade().Release(Here()), 0U);  // no capture is active
  facade().RemoveMemoryPoolOfCUDAGraph(id);
}

// No call can end it any more.
TEST_F(GraphEndedStreamTest, ForACaptureThatItTookWithIt) {
  Build();
  const Stream gone = NewStream();
  const Stream other = NewStream();
  const GraphPoolId id = facade().PrepareMemoryPoolForCUDAGraph(0, gone);
  ASSERT_EQ(device().StreamBeginCapture(gone, CaptureMode::kRelaxed),
            Status::kSuccess);
  Alloc(Mebibytes(1), gone).reset();
  facade().StreamDestroyed(gone);
  {
    const CallLog log(device());
    Alloc(Mebibytes(2), other).reset();
    EXPECT_EQ(log.On(gone), 0U);
  }
  EXPECT_GT(facade().Release(Here()), 0U);  // no capture is active
  Graph graph;
  ASSERT_EQ(device().StreamEndCapture(gone, &graph), Status::kSuccess);
  EXPECT_EQ(device().GraphDestroy(graph), Status::kSuccess);
  Destroy(gone);
  facade().RemoveMemoryPoolOfCUDAGraph(id);
}

// Work completes when the host waits for it.
class GraphEndedStreamWaitTest : public GraphFixture {
 protected:
  GraphEndedStreamWaitTest() : GraphFixture(Lazy()) {}

  static PlatformOptions Lazy() {
    PlatformOptions options;
    options.sim_progress = "lazy";
    return options;
  }
};

// The memory of a destroyed graph is free behind all work of the device. The
// facade waits for that work when a request needs the memory.
TEST_F(GraphEndedStreamWaitTest, ForTheEndOfAnotherPool) {
  Build("allocator_strategy=direct");
  const Stream gone = NewStream();
  const Stream other = NewStream();
  {
    CaptureGuard guard(facade(), other);
    Alloc(Mebibytes(40), other).reset();
    Finish(guard);
  }
  const GraphPoolId id = facade().PrepareMemoryPoolForCUDAGraph(0, gone);
  DropGraphs();
  const AllocationPtr used = Alloc(Mebibytes(1), other);
  Use(used, other);
  facade().StreamDestroyed(gone);
  EXPECT_EQ(device().StreamQuery(other), Status::kNotReady);
  Destroy(gone);
  EXPECT_NE(Alloc(Mebibytes(40), other), nullptr);
  facade().RemoveMemoryPoolOfCUDAGraph(id);
}

TEST_F(GraphEndedStreamWaitTest, ForTheEndOfAPoolThatOthersPostponed) {
  Build("allocator_strategy=direct");
  const Stream gone = NewStream();
  const Stream other = NewStream();
  Alloc(Mebibytes(1), gone).reset();  // creates a chain to end
  const GraphPoolId first = facade().PrepareMemoryPoolForCUDAGraph(0, other);
  {
    CaptureGuard guard(facade(), gone);
    Alloc(Mebibytes(20), gone).reset();
    Finish(guard);
  }
  facade().CaptureEnded(first);
  const GraphPoolId id = facade().PrepareMemoryPoolForCUDAGraph(0, gone);
  DropGraphs();
  facade().RemoveMemoryPoolOfCUDAGraph(first);
  const AllocationPtr used = Alloc(Mebibytes(1), other);
  Use(used, other);
  facade().StreamDestroyed(gone);
  EXPECT_EQ(device().StreamQuery(other), Status::kNotReady);
  Destroy(gone);
  facade().RemoveMemoryPoolOfCUDAGraph(id);
}

}  // namespace
}  // namespace strata
