// Captures beside the end of others: late announcements, memory held by others,
// and concurrent calls of other threads.

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "strata/allocation/diagnostics/tracking_allocator.h"
#include "strata/allocation/error.h"
#include "strata/tests/facade/graphs/graph_fixture.h"

namespace strata {
namespace {

class GraphOverlapTest : public GraphFixture {
 protected:
  // Uses memory in the capture of `stream`.
  void UseInCapture(const Stream& stream) {
    const AllocationPtr inside = Alloc(1000, stream);
    kept_ = inside->data();
    Use(inside, stream);
  }
  // Expects that an eager request gets another block.
  void ExpectKept(const Stream& stream) {
    EXPECT_NE(Alloc(1000, stream)->data(), kept_);
  }

  const void* kept_ = nullptr;
};

TEST_F(GraphOverlapTest, ALateEndDoesNotEndTheNextCaptureOfThePool) {
  Build();
  const Stream first = NewStream();
  const Stream second = NewStream();
  Alloc(1000, second).reset();  // the block is kept for the stream
  const GraphPoolId id = facade().PrepareMemoryPoolForCUDAGraph(0, first);
  ASSERT_EQ(device().StreamBeginCapture(first, CaptureMode::kThreadLocal),
            Status::kSuccess);
  Alloc(1000, first).reset();
  Graph graph;
  ASSERT_EQ(device().StreamEndCapture(first, &graph), Status::kSuccess);
  {
    CaptureGuard guard(facade(), second, id);
    facade().KeepForGraph(id, 0, graph);
    facade().CaptureEnded(id);
    UseInCapture(second);
    Finish(guard);
  }
  ExpectKept(second);
  facade().RemoveMemoryPoolOfCUDAGraph(id);
  EXPECT_EQ(device().GraphDestroy(graph), Status::kSuccess);
}

// Announced between the end of a capture and the announcement of that end by
// its guard.
TEST_F(GraphOverlapTest, AGuardEndsItsOwnCaptureOnly) {
  Build();
  const Stream first = NewStream();
  const Stream second = NewStream();
  Alloc(1000, second).reset();
  const GraphPoolId id = facade().PrepareMemoryPoolForCUDAGraph();
  facade().CaptureEnded(id);
  CaptureGuard guard(facade(), first, id);
  Alloc(1000, first).reset();
  std::unique_ptr<CaptureGuard> other;
  device().SetCallObserver([&](const CallRecord& call) {
    if (call.call != DeviceCall::kUserObjectCreate || other != nullptr) return;
    // In a separate thread, because two captures of one thread may not overlap.
    std::thread([&] {
      other = std::make_unique<CaptureGuard>(facade(), second, id,
                                             CaptureMode::kRelaxed);
    }).join();
  });
  Finish(guard);
  device().SetCallObserver(nullptr);
  ASSERT_NE(other, nullptr);
  UseInCapture(second);
  Finish(*other);
  ExpectKept(second);
  facade().RemoveMemoryPoolOfCUDAGraph(id);
}

// The next pool may be at the address of the first one.
TEST_F(GraphOverlapTest, AChainThatOutlivesItsPoolKnowsTheNextOne) {
  for (const char* strategy : {"auto_growth", "bfc", "direct"}) {
    Build(std::string("allocator_strategy=") + strategy);
    const Stream stream = NewStream();
    AllocationPtr outlives;
    {
      CaptureGuard guard(facade(), stream);
      outlives = Alloc(Mebibytes(1), stream);
      Finish(guard);
    }
    DropGraphs();
    Release();
    GraphExec exec;
    {
      CaptureGuard guard(facade(), stream);
      Use(outlives, stream);
      outlives.reset();
      exec = Finish(guard);
    }
    Release();
    EXPECT_GT(Reserved(), 0U) << strategy;
    Launch(exec, stream);
    EXPECT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
    DropGraphs();
    Release();
    EXPECT_EQ(Reserved(), 0U) << strategy;
  }
}

// The quarantine of a guard would release the block to the layers below after
// the end of the capture.
TEST_F(GraphOverlapTest, WhatIsFreedInACaptureIsKeptUnderAGuardToo) {
  Build("strata_guard,strata_guard_on_error=log");
  const Stream stream = NewStream();
  AllocationPtr outside = Alloc(Mebibytes(1), stream);
  {
    CaptureGuard guard(facade(), stream);
    Use(outside, stream);
    outside.reset();
    Finish(guard);
  }
  Release();
  EXPECT_GT(Reserved(), 0U);
  DropGraphs();
  Release();
  EXPECT_EQ(Reserved(), 0U);
}

TEST_F(GraphOverlapTest, ATrackerLeavesOutWhatACaptureAllocates) {
  Build();
  const Stream stream = NewStream();
  const auto tracker =
      TrackingAllocator::Make(facade().GetAllocator(Here(), stream));
  tracker->Allocate(1000).reset();
  const std::size_t outside = tracker->sizes().total_bytes;
  CaptureGuard guard(facade(), stream);
  {
    const AllocationPtr inside = tracker->Allocate(5000);
    EXPECT_EQ(tracker->AllocationId(*inside), 0U);
  }
  Finish(guard);
  EXPECT_EQ(tracker->sizes().total_bytes, outside);
  EXPECT_EQ(tracker->sizes().live_bytes, 0U);
}

TEST_F(GraphOverlapTest, TheSumsKeepAChainWhoseEndHasToWait) {
  Build();
  const Stream stream = NewStream();
  const Stream gone = NewStream();
  Alloc(1000, stream).reset();
  Alloc(Mebibytes(1), gone).reset();
  const Stats before = facade().GetStats(Here());
  const GraphPoolId id = facade().PrepareMemoryPoolForCUDAGraph(0, stream);
  facade().StreamDestroyed(gone);
  for (const char* when : {"during the capture", "after it"}) {
    const Stats stats = facade().GetStats(Here());
    EXPECT_EQ(stats.allocations, before.allocations) << when;
    EXPECT_EQ(stats.peak_in_use_bytes, before.peak_in_use_bytes) << when;
    facade().CaptureEnded(id);
  }
  Destroy(gone);
  facade().RemoveMemoryPoolOfCUDAGraph(id);
}

TEST_F(GraphOverlapTest, APoolWithoutANumberTakesNoneThatIsTaken) {
  Build();
  const GraphPoolId own = facade().PrepareMemoryPoolForCUDAGraph();
  facade().CaptureEnded(own);
  const GraphPoolId chosen = facade().PrepareMemoryPoolForCUDAGraph(own + 1);
  facade().CaptureEnded(chosen);
  const GraphPoolId next = facade().PrepareMemoryPoolForCUDAGraph();
  EXPECT_NE(next, chosen);
  for (const GraphPoolId id : {own, chosen, next}) {
    facade().RemoveMemoryPoolOfCUDAGraph(id);
    EXPECT_THROW(facade().CaptureEnded(id), std::invalid_argument);
  }
}

// The requests search the memory of the capturing stream.
TEST_F(GraphOverlapTest, RequestsOfOtherThreadsEndNoCapture) {
  Build();
  const Stream captured = NewStream();
  const Stream other = NewStream();
  std::atomic<bool> is_over{false};
  std::thread requests([&] {
    while (!is_over) {
      Alloc(Mebibytes(4), other).reset();
      facade().Release(Here(), other);
    }
  });
  int broken = 0;
  for (int i = 0; i < 30'000; ++i) {
    Alloc(Mebibytes(12), captured).reset();
    try {
      CaptureGuard guard(facade(), captured);
      EXPECT_EQ(device().GraphDestroy(guard.End()), Status::kSuccess);
    } catch (const DeviceError&) {
      ++broken;
    }
  }
  is_over = true;
  requests.join();
  EXPECT_EQ(broken, 0);
}

}  // namespace
}  // namespace strata
