#include "strata/facade/graphs/graph_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <thread>
#include <vector>

#include "strata/allocation/error.h"
#include "strata/tests/facade/graphs/graph_pool_fixture.h"
#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

using testing::HasSubstr;

// cuda_semantics.md C31: the capture of the stream decides, not the thread.
TEST_F(GraphPoolTest, AForkedStreamUsesTheSamePool) {
  CaptureGuard guard(facade(), stream_);
  Join(stream_, other_);
  const AllocationPtr on_fork = Alloc(kBytes, other_);
  const AllocationPtr on_origin = Alloc(kBytes, stream_);
  EXPECT_EQ(facade().GraphPoolReserved(guard.pool()), Reserved());
  Join(other_, stream_);
  Finish(guard);
}

TEST_F(GraphPoolTest, OtherStreamsAndThreadsGoOnOutside) {
  CaptureGuard guard(facade(), stream_);
  const AllocationPtr inside = Alloc(kBytes, stream_);
  const std::size_t pool = facade().GraphPoolReserved(guard.pool());
  std::thread thread([&] {
    AllocationPtr outside = Alloc(kBytes, other_);
    EXPECT_EQ(facade().GraphPoolReserved(guard.pool()), pool);
    Use(outside, other_);
  });
  thread.join();
  const AllocationPtr legacy = facade().Alloc(Here(), kBytes);
  EXPECT_EQ(facade().GraphPoolReserved(guard.pool()), pool);
  Finish(guard);
}

// cuda_semantics.md C17-C19, paddle.md §5 A4: in every capture mode, calls of
// the allocator in other threads do not break the capture.
TEST_F(GraphPoolTest, WorkOutsideHarmsNoCapture) {
  for (const CaptureMode mode :
       {CaptureMode::kGlobal, CaptureMode::kThreadLocal,
        CaptureMode::kRelaxed}) {
    CaptureGuard guard(facade(), stream_, 0, mode);
    const AllocationPtr inside = Alloc(kBytes, stream_);
    std::thread thread([&] {
      for (int i = 0; i < 3; ++i) {
        AllocationPtr outside = Alloc(3 * kBytes, other_);
        Use(outside, other_);
        facade().RecordStream(outside, stream_);
      }
      Alloc(kBytes, other_);
    });
    thread.join();
    Alloc(kBytes, other_);
    Finish(guard);
    DropGraphs();
  }
}

TEST_F(GraphPoolTest, DuringACaptureNothingIsRecordedAskedOrFreed) {
  AllocationPtr outside = Alloc(kBytes, stream_);
  facade().RecordStream(outside, other_);
  CaptureGuard guard(facade(), stream_);
  {
    CallLog log(device());
    AllocationPtr inside = Alloc(kBytes, stream_);
    AllocationPtr more = Alloc(Mebibytes(4), stream_);
    inside.reset();
    outside.reset();
    more.reset();
    EXPECT_EQ(log.Failed(), 0u);
    for (const DeviceCall call :
         {DeviceCall::kEventRecord, DeviceCall::kEventQuery,
          DeviceCall::kStreamSynchronize, DeviceCall::kSynchronize,
          DeviceCall::kStreamQuery, DeviceCall::kMemFree}) {
      EXPECT_TRUE(log.Of(call).empty()) << DeviceCallName(call);
    }
  }
  Finish(guard);
}

TEST_F(GraphPoolTest, TwoCapturesAtOnceHaveTheirOwnPools) {
  CaptureGuard first(facade(), stream_, 0, CaptureMode::kRelaxed);
  CaptureGuard second(facade(), other_, 0, CaptureMode::kRelaxed);
  EXPECT_NE(first.pool(), second.pool());
  const AllocationPtr in_first = Alloc(kBytes, stream_);
  EXPECT_EQ(facade().GraphPoolReserved(second.pool()), 0u);
  const AllocationPtr in_second = Alloc(kBytes, other_);
  EXPECT_NE(facade().GraphPoolReserved(first.pool()), 0u);
  EXPECT_NE(facade().GraphPoolReserved(second.pool()), 0u);
  Finish(first);
  EXPECT_NE(Alloc(kBytes, other_)->data(), in_second->data());
  Finish(second);
}

TEST_F(GraphPoolTest, CapturesThatShareAPoolComeOneAfterAnother) {
  CaptureGuard first(facade(), stream_, 5);
  EXPECT_THROW(static_cast<void>(CaptureGuard(facade(), other_, 5)),
               std::logic_error);
  Alloc(kBytes, stream_);
  Finish(first);
}

// paddle.md §5 A4 (#60516): a pool for each graph wasted memory. Ten graphs in
// one pool need the maximum, not the sum.
TEST_F(GraphPoolTest, GraphsOfOnePoolShareItsMemory) {
  const GraphPoolId pool = facade().PrepareMemoryPoolForCUDAGraph(3, stream_);
  facade().CaptureEnded(pool);
  std::size_t largest = 0;
  std::vector<GraphExec> execs;
  for (std::size_t i = 0; i < 10; ++i) {
    CaptureGuard guard(facade(), stream_, pool);
    const std::size_t bytes = Mebibytes(2 + 2 * (i % 5));
    largest = std::max(largest, bytes);
    for (int step = 0; step < 3; ++step) Use(Alloc(bytes, stream_), stream_);
    execs.push_back(Finish(guard));
  }
  EXPECT_LE(facade().GraphPoolReserved(pool), 2 * largest);
  for (const GraphExec& exec : execs) Launch(exec, other_);
  DropGraphs();
  facade().RemoveMemoryPoolOfCUDAGraph(pool);
  Release();
  EXPECT_EQ(Reserved(), 0u);
}

TEST_F(GraphPoolTest, LivesUntilRemovedAndItsGraphsAreGone) {
  const GraphPoolId pool = facade().PrepareMemoryPoolForCUDAGraph(9, stream_);
  facade().CaptureEnded(pool);
  {
    CaptureGuard guard(facade(), stream_, pool);
    Use(Alloc(kBytes, stream_), stream_);
    Finish(guard);
  }
  DropGraphs();
  Sweep();
  EXPECT_NE(facade().GraphPoolReserved(pool), 0u) << "it is still prepared";
  facade().RemoveMemoryPoolOfCUDAGraph(pool);
  EXPECT_EQ(Reserved(), 0u);
  EXPECT_THROW(facade().RemoveMemoryPoolOfCUDAGraph(pool),
               std::invalid_argument);
  EXPECT_THROW(facade().GraphPoolReserved(pool), std::invalid_argument);
}

// paddle.md §3.8: the original names, without a stream.
TEST_F(GraphPoolTest, ThePoolPreparedServesTheNextCapture) {
  const GraphPoolId pool = facade().PrepareMemoryPoolForCUDAGraph();
  ASSERT_EQ(device().StreamBeginCapture(stream_, CaptureMode::kThreadLocal),
            Status::kSuccess);
  AllocationPtr inside = Alloc(kBytes, stream_);
  EXPECT_NE(facade().GraphPoolReserved(pool), 0u);
  inside.reset();
  Graph graph;
  ASSERT_EQ(device().StreamEndCapture(stream_, &graph), Status::kSuccess);
  const std::size_t reserved = facade().GraphPoolReserved(pool);
  // The facade detects the end of the capture itself.
  AllocationPtr outside = Alloc(kBytes, stream_);
  EXPECT_EQ(facade().GraphPoolReserved(pool), reserved);
  {
    CallLog log(device());
    AllocationPtr hit = Alloc(Mebibytes(1), stream_);
    hit.reset();
    Alloc(Mebibytes(1), stream_);
    EXPECT_TRUE(log.Of(DeviceCall::kStreamCaptureInfo).empty());
  }
  EXPECT_EQ(device().GraphDestroy(graph), Status::kSuccess);
  facade().RemoveMemoryPoolOfCUDAGraph(pool);
}

TEST_F(GraphPoolTest, ACaptureThatNobodyPreparedIsNamed) {
  CaptureGuard guard(facade(), stream_);
  ASSERT_EQ(device().StreamBeginCapture(other_, CaptureMode::kThreadLocal),
            Status::kSuccess);
  try {
    Alloc(kBytes, other_);
    ADD_FAILURE() << "it has no pool";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("PrepareMemoryPoolForCUDAGraph"));
  }
  Graph graph;
  EXPECT_EQ(device().StreamEndCapture(other_, &graph), Status::kSuccess);
  Finish(guard);
  EXPECT_EQ(device().GraphDestroy(graph), Status::kSuccess);
}

TEST_F(GraphPoolTest, ExhaustionFailsTheRequestNotTheCapture) {
  AllocationPtr eager = Alloc(Mebibytes(20), other_);
  eager.reset();  // idle, but not released during a capture
  CaptureGuard guard(facade(), stream_);
  try {
    Alloc(Mebibytes(60), stream_);
    ADD_FAILURE() << "there is no room";
  } catch (const OutOfMemory& error) {
    EXPECT_THAT(error.what(), HasSubstr("a capture is under way"));
  }
  Use(Alloc(kBytes, stream_), stream_);
  Finish(guard);
}

// The error lists the bytes of each layer. In a thread that is not in relaxed
// mode, a query of a driver pool ends captures.
TEST_F(GraphPoolTest, ExhaustionBesideADriversPoolFailsTheRequestAlone) {
  Build("allocator_strategy=cuda_malloc_async");
  const AllocationPtr eager = Alloc(kBytes, other_);
  CaptureGuard guard(facade(), stream_);
  EXPECT_THROW(Alloc(Mebibytes(80), stream_), OutOfMemory);
  EXPECT_THROW(Alloc(Mebibytes(80), other_), OutOfMemory);
  EXPECT_GT(facade().GetAllocator(kPlace, other_).stats().in_use_bytes, 0U);
  Use(Alloc(kBytes, stream_), stream_);
  Finish(guard);
}

TEST_F(GraphPoolTest, TheLimitOfThePlaceHoldsForItsPools) {
  Build("gpu_memory_limit_mb=8");
  CaptureGuard guard(facade(), stream_);
  EXPECT_THROW(Alloc(Mebibytes(10), stream_), OutOfMemory);
  Alloc(kBytes, stream_);
  Finish(guard);
}

TEST_F(GraphPoolTest, ARefusalNamesTheLimitOfThePlace) {
  Build("allocator_strategy=auto_growth,gpu_memory_limit_mb=8");
  CaptureGuard guard(facade(), stream_);
  std::vector<AllocationPtr> held;
  try {
    while (true) held.push_back(Alloc(Mebibytes(1), stream_));
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.failure().limit_bytes, Mebibytes(8));
    EXPECT_THAT(error.advice(), testing::HasSubstr("higher by 1 MiB"));
  }
  EXPECT_EQ(held.size(), 8U);
  held.clear();
  Finish(guard);
}

TEST_F(GraphPoolTest, StatisticsCountWhatPoolsHold) {
  CaptureGuard guard(facade(), stream_);
  const AllocationPtr inside = Alloc(kBytes, stream_);
  const Stats stats = facade().GetStats(Here());
  EXPECT_EQ(stats.in_use_bytes, inside->size());
  EXPECT_EQ(stats.reserved_bytes, facade().GraphPoolReserved(guard.pool()));
  Finish(guard);
}

// Growth elsewhere searches idle memory. It must not query a capturing stream.
TEST_F(GraphPoolTest, GrowthElsewhereLeavesIdleMemoryOfTheCaptureAlone) {
  Alloc(Mebibytes(20), stream_).reset();
  facade().Alloc(Here(), Mebibytes(12)).reset();
  CaptureGuard guard(facade(), stream_);
  const AllocationPtr grown = Alloc(Mebibytes(14), other_);
  Alloc(kBytes, stream_);
  Finish(guard);
}

TEST_F(GraphPoolTest, ARequestOfAStreamThatCannotTellFails) {
  CaptureGuard guard(facade(), stream_);
  device().AddFault(FailAll(DeviceCall::kStreamCaptureInfo));
  Failure failure;
  EXPECT_EQ(facade().TryAlloc(Here(), Request{kBytes}, stream_, failure),
            nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kDevice);
  device().ClearFaults();
  Use(Alloc(kBytes, stream_), stream_);
  Finish(guard);
}

TEST_F(GraphPoolTest, AFacadeMayGoBeforeItsGraphs) {
  GraphExec exec;
  {
    CaptureGuard guard(facade(), stream_);
    Use(Alloc(kBytes, stream_), stream_);
    exec = Finish(guard);
  }
  facade_.reset();
  Launch(exec, stream_);
  DropGraphs();
  // Any facade notices the end of the graph.
  Build();
  Sweep();
}

TEST_F(GraphPoolTest, AGuardThatIsLeftEndsItsCapture) {
  { const CaptureGuard guard(facade(), stream_); }
  CaptureStatus status = CaptureStatus::kActive;
  EXPECT_EQ(device().StreamIsCapturing(stream_, &status), Status::kSuccess);
  EXPECT_EQ(status, CaptureStatus::kNone);
  const CaptureGuard again(facade(), stream_);
}

// The driver ends the capture although it refuses the call.
TEST_F(GraphPoolTest, AGuardEndedByAnotherThreadSaysThatItsCaptureIsLost) {
  CaptureGuard guard(facade(), stream_);
  std::thread([&] {
    try {
      guard.End();
      ADD_FAILURE() << "ended by a thread that did not begin it";
    } catch (const DeviceError& error) {
      EXPECT_THAT(error.what(), HasSubstr("is lost"));
    }
  }).join();
  EXPECT_THROW(guard.End(), std::logic_error);
  CaptureGuard again(facade(), stream_);
  Finish(again);
}

TEST_F(GraphPoolTest, AGuardSaysWhyItCannotBegin) {
  EXPECT_THROW(
      static_cast<void>(CaptureGuard(facade(), device().LegacyStream())),
      DeviceError);
  EXPECT_THROW(static_cast<void>(CaptureGuard(facade(), Stream())),
               std::invalid_argument);
  CaptureGuard guard(facade(), stream_);
  Finish(guard);
  EXPECT_THROW(guard.End(), std::logic_error);
}

}  // namespace
}  // namespace strata
