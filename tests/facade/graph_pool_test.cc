#include "strata/facade/graph_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "strata/allocation/error.h"
#include "strata/tests/facade/graph_fixture.h"
#include "strata/tests/testing/pool_place.h"

namespace strata {
namespace {

using testing::HasSubstr;

constexpr std::size_t kBytes = std::size_t{256} << 10;
// A chunk of its own.
constexpr std::size_t kLargeBytes = Mebibytes(12);

class GraphPoolTest : public GraphFixture {
 protected:
  GraphPoolTest() : stream_(NewStream()), other_(NewStream()) { Build(); }

  const Stream stream_;
  const Stream other_;
};

// cuda_semantics.md C31: by the capture of the stream, not by thread.
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

// cuda_semantics.md C17-C19, paddle.md §5 A4: under every mode of capture, what
// the allocator does in other threads harms no capture.
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

// paddle.md §3.8: the names of the original, without a stream.
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
  // Notices by itself that the capture is over.
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

// cuda_semantics.md K2: used again once the fork has joined.
TEST_F(GraphPoolTest, AMarkedBlockIsUsedAgainByAncestry) {
  CaptureGuard guard(facade(), stream_);
  AllocationPtr shared = Alloc(kLargeBytes, stream_);
  Use(shared, stream_);
  Join(stream_, other_);
  Use(shared, other_);
  EXPECT_TRUE(facade().RecordStream(shared, other_));
  const void* const data = shared->data();
  shared.reset();
  AllocationPtr before = Alloc(kLargeBytes, stream_);
  EXPECT_NE(before->data(), data) << "the fork may still use it";
  Join(other_, stream_);
  AllocationPtr after = Alloc(kLargeBytes, stream_);
  EXPECT_EQ(after->data(), data);
  Finish(guard);
}

TEST_F(GraphPoolTest, AMarkedBlockWaitsForEveryStreamOfTheCapture) {
  const Stream third = NewStream();
  for (const bool is_last_first : {false, true}) {
    SCOPED_TRACE(is_last_first);
    CaptureGuard guard(facade(), stream_);
    AllocationPtr shared = Alloc(kLargeBytes, stream_);
    for (const Stream fork : {other_, third}) {
      Join(stream_, fork);
      Use(shared, fork);
      EXPECT_TRUE(facade().RecordStream(shared, fork));
    }
    const void* const data = shared->data();
    shared.reset();
    Join(is_last_first ? third : other_, stream_);
    AllocationPtr before = Alloc(kLargeBytes, stream_);
    EXPECT_NE(before->data(), data) << "one may still use it";
    Join(is_last_first ? other_ : third, stream_);
    AllocationPtr after = Alloc(kLargeBytes, stream_);
    EXPECT_EQ(after->data(), data);
    before.reset();
    after.reset();
    Finish(guard);
  }
}

TEST_F(GraphPoolTest, AMarkedBlockIsUsedAgainAfterTheCapture) {
  const GraphPoolId pool = facade().PrepareMemoryPoolForCUDAGraph(0, stream_);
  facade().CaptureEnded(pool);
  const void* data = nullptr;
  {
    CaptureGuard guard(facade(), stream_, pool);
    AllocationPtr shared = Alloc(kBytes, stream_);
    Join(stream_, other_);
    Use(shared, other_);
    facade().RecordStream(shared, other_);
    data = shared->data();
    shared.reset();
    Join(other_, stream_);
    Finish(guard);
  }
  CaptureGuard guard(facade(), stream_, pool);
  EXPECT_EQ(Alloc(kBytes, stream_)->data(), data);
  Finish(guard);
  DropGraphs();
  facade().RemoveMemoryPoolOfCUDAGraph(pool);
}

TEST_F(GraphPoolTest, AMarkTakenBackDoesNotWait) {
  CaptureGuard guard(facade(), stream_);
  AllocationPtr shared = Alloc(kBytes, stream_);
  Join(stream_, other_);
  Use(shared, other_);
  facade().RecordStream(shared, other_);
  facade().EraseStream(*shared, other_);
  const void* const data = shared->data();
  shared.reset();
  EXPECT_EQ(Alloc(kBytes, stream_)->data(), data);
  Join(other_, stream_);
  Finish(guard);
}

TEST_F(GraphPoolTest, AMarkTakenBackLeavesThoseOfOtherStreams) {
  const Stream third = NewStream();
  CaptureGuard guard(facade(), stream_);
  AllocationPtr shared = Alloc(kLargeBytes, stream_);
  for (const Stream fork : {other_, third}) {
    Join(stream_, fork);
    Use(shared, fork);
    facade().RecordStream(shared, fork);
  }
  Join(other_, stream_);
  facade().EraseStream(*shared, other_);
  const void* const data = shared->data();
  shared.reset();
  EXPECT_NE(Alloc(kLargeBytes, stream_)->data(), data);
  Join(third, stream_);
  Finish(guard);
}

// cuda_semantics.md K4, K5: recorded for a capture, freed long after it.
TEST_F(GraphPoolTest, WhatACaptureWasRecordedForIsKeptForItsGraph) {
  AllocationPtr input = Alloc(kBytes, other_);
  {
    CaptureGuard guard(facade(), stream_);
    Use(input, stream_);
    EXPECT_TRUE(facade().RecordStream(input, stream_));
    Finish(guard);
  }
  input.reset();
  Release();  // waits for whoever may use what was freed
  EXPECT_GE(Reserved(), kBytes) << "replays read it";
  DropGraphs();
  Release();
  EXPECT_EQ(Reserved(), 0u);
}

// What a graph does again at each launch, no event ends.
TEST_F(GraphPoolTest, WhatACaptureUsesUpToAnEventIsKeptForItsGraph) {
  Event event;
  ASSERT_EQ(device().EventCreate(&event, kEventDisableTiming),
            Status::kSuccess);
  EXPECT_EQ(device().EventRecord(event, stream_, 0), Status::kSuccess);
  AllocationPtr input = Alloc(kBytes, other_);
  {
    CaptureGuard guard(facade(), stream_);
    Use(input, stream_);
    EXPECT_TRUE(facade().RecordUse(*input, stream_, event));
    Finish(guard);
  }
  EXPECT_EQ(device().EventDestroy(event), Status::kSuccess);
  input.reset();
  Release();
  EXPECT_GE(Reserved(), kBytes) << "replays read it";
  DropGraphs();
  Release();
  EXPECT_EQ(Reserved(), 0u);
}

TEST_F(GraphPoolTest, AnInputOfTwoGraphsIsKeptForBoth) {
  AllocationPtr input = Alloc(kBytes, other_);
  Graph first;
  {
    CaptureGuard guard(facade(), stream_);
    Use(input, stream_);
    EXPECT_TRUE(facade().RecordStream(input, stream_));
    first = guard.End();
  }
  {
    CaptureGuard guard(facade(), stream_);
    Use(input, stream_);
    EXPECT_TRUE(facade().RecordStream(input, stream_));
    Finish(guard);
  }
  input.reset();
  EXPECT_EQ(device().GraphDestroy(first), Status::kSuccess);
  // The device tells who held the graph at its next call.
  EXPECT_EQ(device().Synchronize(), Status::kSuccess);
  Sweep();
  Release();
  EXPECT_GE(Reserved(), kBytes) << "replays of the second read it";
  DropGraphs();
  Release();
  EXPECT_EQ(Reserved(), 0u);
}

// cuda_semantics.md M7: the host must not get it back while replays read it.
TEST_F(GraphPoolTest, PinnedMemoryIsKeptForItsGraphToo) {
  Build("use_auto_growth_pinned_allocator=1");
  const AllocationPtr target = Alloc(kBytes, stream_);
  AllocationPtr pinned = facade().Alloc(PinnedPlace(0), 4096);
  const void* const data = pinned->data();
  {
    CaptureGuard guard(facade(), stream_);
    EXPECT_EQ(device().MemcpyAsync(reinterpret_cast<DevicePtr>(target->data()),
                                   reinterpret_cast<DevicePtr>(pinned->data()),
                                   4096, stream_),
              Status::kSuccess);
    EXPECT_TRUE(facade().RecordStream(pinned, stream_));
    pinned.reset();
    Finish(guard);
  }
  EXPECT_NE(facade().Alloc(PinnedPlace(0), 4096)->data(), data);
  DropGraphs();
}

TEST_F(GraphPoolTest, ExhaustionFailsTheRequestNotTheCapture) {
  AllocationPtr eager = Alloc(Mebibytes(20), other_);
  eager.reset();  // idle, but nothing goes back to the driver in a capture
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

TEST_F(GraphPoolTest, TheLimitOfThePlaceHoldsForItsPools) {
  Build("gpu_memory_limit_mb=8");
  CaptureGuard guard(facade(), stream_);
  EXPECT_THROW(Alloc(Mebibytes(10), stream_), OutOfMemory);
  Alloc(kBytes, stream_);
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

// Growth elsewhere looks for idle memory: it must not ask a stream that
// captures.
TEST_F(GraphPoolTest, GrowthElsewhereLeavesIdleMemoryOfTheCaptureAlone) {
  Alloc(Mebibytes(20), stream_).reset();
  facade().Alloc(Here(), Mebibytes(12)).reset();
  CaptureGuard guard(facade(), stream_);
  const AllocationPtr grown = Alloc(Mebibytes(14), other_);
  Alloc(kBytes, stream_);
  Finish(guard);
}

// Memory of one pool that another pool's capture uses is kept for both.
TEST_F(GraphPoolTest, MemoryOfAPoolIsKeptForGraphsOfAnother) {
  const GraphPoolId first = facade().PrepareMemoryPoolForCUDAGraph(11, stream_);
  facade().CaptureEnded(first);
  AllocationPtr shared;
  {
    CaptureGuard guard(facade(), stream_, first);
    shared = Alloc(kLargeBytes, stream_);
    Finish(guard);
  }
  const void* const data = shared->data();
  {
    CaptureGuard guard(facade(), stream_);
    Use(shared, stream_);
    shared.reset();
    Finish(guard);
  }
  {
    CaptureGuard guard(facade(), stream_, first);
    EXPECT_NE(Alloc(kLargeBytes, stream_)->data(), data)
        << "a graph of another pool uses it";
    Finish(guard);
  }
  DropGraphs();
  facade().RemoveMemoryPoolOfCUDAGraph(first);
  Release();
  EXPECT_EQ(Reserved(), 0u);
}

// Two blocks that two captures use, each freed inside the other's: no pool may
// wait for itself.
TEST_F(GraphPoolTest, PoolsThatKeepMemoryForEachOtherEnd) {
  AllocationPtr one = Alloc(kBytes, other_);
  AllocationPtr two = Alloc(kBytes, other_);
  {
    CaptureGuard guard(facade(), stream_);
    facade().RecordStream(one, stream_);
    facade().RecordStream(two, stream_);
    Finish(guard);
  }
  {
    CaptureGuard guard(facade(), stream_);
    facade().RecordStream(one, stream_);
    facade().RecordStream(two, stream_);
    two.reset();
    Finish(guard);
  }
  one.reset();
  DropGraphs();
  Release();
  EXPECT_EQ(Reserved(), 0u);
}

// A long-lived input of many captures keeps none of their pools.
TEST_F(GraphPoolTest, AnInputDoesNotKeepPoolsWhoseGraphsAreGone) {
  const AllocationPtr input = Alloc(kBytes, other_);
  const std::size_t before = Reserved();
  for (int i = 0; i < 3; ++i) {
    {
      CaptureGuard guard(facade(), stream_);
      facade().RecordStream(input, stream_);
      Alloc(kBytes, stream_);
      Finish(guard);
    }
    DropGraphs();
    Sweep();
    EXPECT_EQ(Reserved(), before);
  }
}

// `direct` waits at each free; on the legacy stream that would end the capture.
TEST_F(GraphPoolTest, FreesThatWouldWaitForTheLegacyStreamComeLater) {
  Build("allocator_strategy=direct");
  Stream blocking;
  ASSERT_EQ(device().StreamCreate(&blocking, kStreamDefault), Status::kSuccess);
  AllocationPtr eager = facade().Alloc(Here(), kBytes);
  {
    CaptureGuard guard(facade(), blocking);
    CallLog log(device());
    eager.reset();
    EXPECT_TRUE(log.Of(DeviceCall::kMemFree).empty());
    Finish(guard);
  }
  EXPECT_EQ(Reserved(), 0u);
  DropGraphs();
  facade_.reset();
  EXPECT_EQ(device().StreamDestroy(blocking), Status::kSuccess);
}

// cuda_semantics.md C19: FreeHost may wait for the device.
TEST_F(GraphPoolTest, LockedPagesGoToTheDriverAfterTheCapture) {
  Build("strata_pinned_strategy=direct");
  AllocationPtr pinned = facade().Alloc(PinnedPlace(0), 4096);
  AllocationPtr marked = facade().Alloc(PinnedPlace(0), 4096);
  EXPECT_TRUE(facade().RecordStream(marked, other_));
  marked.reset();
  {
    CaptureGuard guard(facade(), stream_);
    const CallLog log(device());
    pinned.reset();
    const AllocationPtr drains = facade().Alloc(PinnedPlace(0), 4096);
    EXPECT_TRUE(log.Of(DeviceCall::kFreeHost).empty());
    Finish(guard);
  }
  EXPECT_EQ(device().Leaks().pinned_ranges, 0U);
}

// A device that could not tell was taken to say that there is no capture, and
// the memory was reused while the graph had its address.
TEST_F(GraphPoolTest, ADeviceThatCannotTellCountsAsCapturing) {
  AllocationPtr freed = Alloc(kBytes, stream_);
  AllocationPtr recorded = Alloc(kBytes, other_);
  const void* const addresses[] = {freed->data(), recorded->data()};
  {
    CaptureGuard guard(facade(), stream_);
    Use(freed, stream_);
    Use(recorded, stream_);
    device().AddFault(FailAll(DeviceCall::kStreamCaptureInfo));
    freed.reset();
    EXPECT_TRUE(facade().RecordStream(recorded, stream_));
    device().ClearFaults();
    Finish(guard);
  }
  recorded.reset();
  {
    const AllocationPtr first = Alloc(kBytes, stream_);
    const AllocationPtr second = Alloc(kBytes, other_);
    EXPECT_NE(first->data(), addresses[0]);
    EXPECT_NE(second->data(), addresses[1]);
  }
  DropGraphs();
  Release();
  EXPECT_EQ(Reserved(), 0u);
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
  // Any facade notices that the graph is gone.
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
