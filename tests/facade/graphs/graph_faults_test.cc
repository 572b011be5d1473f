// Faults of PaddlePaddle's graphs and of its facade, as regression tests
// (paddle.md §5 A4, B1, B13; pytorch.md §8). docs/known_faults.md lists them.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "strata/allocation/record_slab.h"
#include "strata/facade/allocator_facade.h"
#include "strata/tests/facade/graphs/graph_fixture.h"

namespace strata {
namespace {

constexpr std::size_t kFaultBytes = std::size_t{256} << 10;
// Enough for a separate chunk.
constexpr std::size_t kLargeBytes = Mebibytes(12);

class GraphFaultsTest : public GraphFixture {
 protected:
  explicit GraphFaultsTest(int devices = 1) : GraphFixture(devices) {}
};

// paddle.md §5 A4 (#78272): with the system allocator, a free during a capture
// called cudaFree, which ends the capture.
TEST_F(GraphFaultsTest, A4SystemAllocatorFreesNothingWhileCapturing) {
  Build("use_system_allocator=1");
  const Stream stream = NewStream();
  AllocationPtr before = Alloc(kFaultBytes, stream);
  CaptureGuard guard(facade(), stream, 0, CaptureMode::kGlobal);
  {
    const CallLog log(device());
    AllocationPtr inside = Alloc(kFaultBytes, stream);
    Use(inside, stream);
    inside.reset();
    before.reset();
    EXPECT_TRUE(log.Of(DeviceCall::kMemFree).empty());
    EXPECT_EQ(log.Failed(), 0U);
  }
  Launch(Finish(guard), stream);
  DropGraphs();
  Release();
  EXPECT_EQ(Reserved(), 0U);
}

// paddle.md §5 A4 (#37814): a data loader that allocated during a capture ended
// it, unless the capture was made thread-local.
TEST_F(GraphFaultsTest, A4DataLoaderMayGrowDuringAGlobalCapture) {
  Build();
  const Stream stream = NewStream();
  const Stream copy = NewStream();
  CaptureGuard guard(facade(), stream, 0, CaptureMode::kGlobal);
  std::thread loader([&] {
    for (int i = 0; i < 4; ++i) {
      AllocationPtr batch = Alloc(kLargeBytes, copy);
      AllocationPtr staging = facade().Alloc(PinnedPlace(0), kLargeBytes);
      Use(batch, copy);
      facade().RecordStream(staging, copy);
    }
  });
  loader.join();
  Use(Alloc(kFaultBytes, stream), stream);
  Launch(Finish(guard), stream);
}

// paddle.md §5 A4 (#73103): at a later replay of the graph, the pool was
// destroyed, or its memory reused.
TEST_F(GraphFaultsTest, A4ReplaysAfterEverythingElseIsGone) {
  Build();
  const Stream stream = NewStream();
  GraphExec exec;
  {
    CaptureGuard guard(facade(), stream);
    AllocationPtr inside = Alloc(kLargeBytes, stream);
    Use(inside, stream);
    exec = Finish(guard);
  }
  for (int i = 0; i < 3; ++i) {
    Release();
    facade().EmptyCache();
    const AllocationPtr other = Alloc(kLargeBytes, stream);
    Launch(exec, stream);
    EXPECT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  }
}

// paddle.md §5 B1: an allocator that released idle chunks of a pool unmapped
// addresses that its graphs had captured.
TEST_F(GraphFaultsTest, B1PoolsKeepIdleChunksWhateverTheOption) {
  for (const char* options :
       {"free_idle_chunk=1", "free_idle_chunk=1,free_when_no_cache_hit=1",
        "auto_growth_give_back_limit=0"}) {
    SCOPED_TRACE(options);
    Build(options);
    const Stream stream = NewStream();
    GraphExec exec;
    {
      CaptureGuard guard(facade(), stream);
      AllocationPtr idle = Alloc(kLargeBytes, stream);
      Use(idle, stream);
      idle.reset();
      exec = Finish(guard);
    }
    Release();
    Alloc(Mebibytes(20), stream).reset();
    Launch(exec, stream);
    // This reports the use of an unmapped address.
    EXPECT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
    DropGraphs();
    Release();
    EXPECT_EQ(Reserved(), 0U);
  }
}

// paddle.md §5 B13: the map of pools and its counts were not synchronised, and
// a flag set by one thread announced a capture to all threads.
TEST_F(GraphFaultsTest, B13ThreadsPrepareCaptureAndRemoveSideBySide) {
  Build();
  constexpr int kThreads = 4;
  constexpr int kRounds = 20;
  std::vector<Stream> streams;
  for (int i = 0; i < 2 * kThreads; ++i) streams.push_back(NewStream());
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const Stream& own = streams[2 * t];
      const Stream& eager = streams[2 * t + 1];
      const GraphPoolId kept = facade().PrepareMemoryPoolForCUDAGraph(0, own);
      facade().CaptureEnded(kept);
      for (int round = 0; round < kRounds; ++round) {
        EXPECT_EQ(facade().PrepareMemoryPoolForCUDAGraph(kept, own), kept);
        facade().CaptureEnded(kept);
        // Few new pools: an ended pool releases no memory while any capture is
        // active.
        CaptureGuard guard(facade(), own, round % 10 == 0 ? 0 : kept);
        AllocationPtr inside = Alloc(kFaultBytes, own);
        AllocationPtr outside = Alloc(kFaultBytes, eager);
        EXPECT_GE(facade().GraphPoolReserved(guard.pool()), kFaultBytes);
        Use(inside, own);
        Use(outside, eager);
        const Graph graph = guard.End();
        EXPECT_EQ(device().GraphDestroy(graph), Status::kSuccess);
        facade().RemoveMemoryPoolOfCUDAGraph(kept);
      }
      facade().RemoveMemoryPoolOfCUDAGraph(kept);
    });
  }
  for (std::thread& thread : threads) thread.join();
  DropGraphs();  // the device reports the end of the last one
  Release();
  EXPECT_EQ(Reserved(), 0U);
}

// paddle.md §5 B13: returned references named replaced objects.
TEST_F(GraphFaultsTest, B13ChainsStayWhereTheyAre) {
  Build();
  const Stream stream = NewStream();
  Allocator* const chain = &facade().GetAllocator(Here(), stream);
  Allocator* const of_default = &facade().GetAllocator(Here());
  for (int i = 0; i < 100; ++i) Alloc(kFaultBytes, NewStream());
  {
    CaptureGuard guard(facade(), stream);
    EXPECT_EQ(&facade().GetAllocator(Here(), stream), chain);
    // For the capture, this object allocates from the pool of the capture.
    const AllocationPtr inside = chain->Allocate(kFaultBytes);
    EXPECT_GE(facade().GraphPoolReserved(guard.pool()), kFaultBytes);
    Finish(guard);
  }
  facade().EmptyCache();
  EXPECT_EQ(&facade().GetAllocator(Here(), stream), chain);
  EXPECT_EQ(&facade().GetAllocator(Here()), of_default);
}

// paddle.md §5 B13: the destructor of the facade deliberately leaked its state.
TEST_F(GraphFaultsTest, B13AFacadeTakesEverythingWithIt) {
  const std::size_t records = RecordSlab::Instance().taken();
  for (int i = 0; i < 3; ++i) {
    Build();
    const Stream stream = NewStream();
    CaptureGuard guard(facade(), stream);
    Alloc(kFaultBytes, stream);
    Finish(guard);
    DropGraphs();
  }
  const std::weak_ptr<SimPlatform> platform = platform_;
  const long users = platform.use_count();  // NOLINT(google-runtime-int)
  facade_.reset();
  EXPECT_LT(platform.use_count(), users);
  EXPECT_EQ(device().Leaks().allocations, 0U);
  EXPECT_EQ(RecordSlab::Instance().taken(), records);
}

// pytorch.md §8 "retry path" (#159674): while a pool was in use, requests were
// not retried, although idle memory of another stream would have served them.
TEST_F(GraphFaultsTest, RetryPathTakesIdleChunksBesideACapture) {
  Build();
  const Stream stream = NewStream();
  const Stream idle = NewStream();
  const Stream eager = NewStream();
  Alloc(Mebibytes(40), idle).reset();
  CaptureGuard guard(facade(), stream);
  const AllocationPtr inside = Alloc(kFaultBytes, stream);
  const AllocationPtr taken = Alloc(Mebibytes(36), eager);
  Use(taken, eager);
  Launch(Finish(guard), stream);
}

class GraphFaultsDevicesTest : public GraphFaultsTest {
 protected:
  GraphFaultsDevicesTest() : GraphFaultsTest(4) {}
};

// paddle.md §5 B13: each pool built stacks for all devices.
TEST_F(GraphFaultsDevicesTest, B13APoolTouchesItsOwnDeviceAlone) {
  Build();
  const Stream stream = NewStream();
  const std::uint64_t calls[] = {CountAll(1), CountAll(2), CountAll(3)};
  const GraphPoolId pool = facade().PrepareMemoryPoolForCUDAGraph(1, stream);
  facade().CaptureEnded(pool);
  {
    CaptureGuard guard(facade(), stream, pool);
    Use(Alloc(kFaultBytes, stream), stream);
    Launch(Finish(guard), stream);
  }
  DropGraphs();
  facade().RemoveMemoryPoolOfCUDAGraph(pool);
  for (int other = 1; other < 4; ++other) {
    EXPECT_EQ(CountAll(other), calls[other - 1]) << "device " << other;
  }
}

}  // namespace
}  // namespace strata
