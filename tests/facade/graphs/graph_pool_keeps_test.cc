// Memory that a graph pool keeps while a capture or its graph may use it.

#include <gtest/gtest.h>

#include "strata/tests/facade/graphs/graph_pool_fixture.h"
#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

// cuda_semantics.md K2: reused once the fork has joined.
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
  Release();  // waits for all possible users of freed memory
  EXPECT_GE(Reserved(), kBytes) << "replays read it";
  DropGraphs();
  Release();
  EXPECT_EQ(Reserved(), 0u);
}

// A graph repeats its uses at each launch, so an event cannot end them.
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
  // The device releases the objects of the graph at its next call.
  EXPECT_EQ(device().Synchronize(), Status::kSuccess);
  Sweep();
  Release();
  EXPECT_GE(Reserved(), kBytes) << "replays of the second read it";
  DropGraphs();
  Release();
  EXPECT_EQ(Reserved(), 0u);
}

// cuda_semantics.md M7: the host must not reuse it while replays read it.
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

// Two captures use two blocks, and each block is freed inside the capture of
// the other. No pool may wait for itself.
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

// `direct` waits at each free. On the legacy stream, a wait would end the
// capture.
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

// An earlier fault: a failed query counted as "no capture", and the memory was
// reused while the graph still had its address.
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

}  // namespace
}  // namespace strata
