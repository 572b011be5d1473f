// The rules of captures and graphs (cuda_semantics.md §5.3), on records.

#include <gtest/gtest.h>

#include "strata/platform/check/hazard_checker.h"
#include "strata/tests/testing/record_script.h"

namespace strata {
namespace {

constexpr std::uint64_t kChunk = 0x100000;
constexpr std::uint64_t kBlock = 0x1000;  // bytes of a block
constexpr std::uint64_t kEvent = 0xe1;
constexpr std::uint64_t kOther = 0xe2;
constexpr std::uint64_t kA = 3;  // streams
constexpr std::uint64_t kB = 7;
constexpr std::uint64_t kGraph = 0x61;
constexpr std::uint64_t kExec = 0x62;

class HazardGraphsTest : public testing::Test {
 protected:
  HazardGraphsTest() {
    run_.CreateStream(kA);
    run_.CreateStream(kB);
    run_.MemAlloc(kChunk, 1 << 20);
  }

  void Fork() {
    run_.Record(kEvent, kA);
    run_.Wait(kB, kEvent);
  }
  void Join() {
    run_.Record(kOther, kB);
    run_.Wait(kA, kOther);
  }
  void EndAndInstantiate(std::uint64_t graph = kGraph,
                         std::uint64_t exec = kExec) {
    run_.End(kA, graph);
    run_.Instantiate(exec, graph);
  }
  // A graph that uses one private block at `ptr`.
  void CapturePrivate(std::uint64_t ptr, std::uint64_t graph,
                      std::uint64_t exec) {
    run_.Begin(kA);
    run_.Alloc(ptr, kBlock, kA);
    run_.Write(ptr, kBlock, kA);
    run_.Free(ptr, kA);
    EndAndInstantiate(graph, exec);
  }

  RecordScript run_;
};

TEST_F(HazardGraphsTest, NothingRunsInACapture) {
  run_.Begin(kA);
  run_.Write(kChunk, kBlock, kA);
  run_.End(kA, kGraph);
  run_.MemFree(kChunk);
  EXPECT_EQ(run_.Kinds(), "");
}

// T79, cuda_semantics K2
TEST_F(HazardGraphsTest, ReuseByADescendantIsClean) {
  run_.Begin(kA);
  run_.Alloc(kChunk, kBlock, kA);
  run_.Write(kChunk, kBlock, kA);
  run_.Free(kChunk, kA);
  Fork();
  run_.Alloc(kChunk, kBlock, kB);
  run_.Write(kChunk, kBlock, kB);
  Join();
  EndAndInstantiate();
  run_.Launch(kExec, kA);
  run_.Launch(kExec, kB);
  EXPECT_EQ(run_.Kinds(), "");
}

// T79: the fork is older than the use.
TEST_F(HazardGraphsTest, ReuseBesideAnAncestorIsFoundAtInstantiation) {
  run_.Begin(kA);
  Fork();
  run_.Alloc(kChunk, kBlock, kA);
  run_.Write(kChunk, kBlock, kA);
  run_.Free(kChunk, kA);
  run_.Alloc(kChunk, kBlock, kB);
  run_.Write(kChunk, kBlock, kB);
  Join();
  run_.End(kA, kGraph);
  EXPECT_EQ(run_.Kinds(), "");
  run_.Instantiate(kExec, kGraph);
  EXPECT_EQ(run_.Kinds(), "reuse-race");
  // The hand-out and the use; a second instantiation has nothing to add.
  EXPECT_EQ(run_.checker.hazard_count(), 2U);
  run_.Instantiate(kExec + 1, kGraph);
  EXPECT_EQ(run_.checker.hazard_count(), 2U);
}

// cuda_semantics K2: a stream whose dependencies were replaced starts anew.
TEST_F(HazardGraphsTest, ReplacedDependenciesTakeTheOrderOfAStreamAway) {
  run_.Begin(kA);
  run_.Alloc(kChunk, kBlock, kA);
  run_.Write(kChunk, kBlock, kA);
  run_.Free(kChunk, kA);
  run_.Update(kA, true);
  run_.Alloc(kChunk, kBlock, kA);
  run_.Write(kChunk, kBlock, kA);
  EndAndInstantiate();
  EXPECT_EQ(run_.Kinds(), "reuse-race");
}

TEST_F(HazardGraphsTest, NamedDependenciesGiveOrder) {
  run_.Begin(kA);
  run_.Alloc(kChunk, kBlock, kA);
  run_.node = 0xd1;
  run_.Write(kChunk, kBlock, kA);
  run_.Free(kChunk, kA);
  run_.Update(kA, true);
  run_.Dependency(0xd1);
  run_.Update(kA, false);
  run_.Alloc(kChunk, kBlock, kA);
  run_.Write(kChunk, kBlock, kA);
  EndAndInstantiate();
  EXPECT_EQ(run_.Kinds(), "");
}

TEST_F(HazardGraphsTest, NodesNamedForACallThatFailedAreForgotten) {
  run_.Begin(kA);
  run_.Alloc(kChunk, kBlock, kA);
  run_.node = 0xd1;
  run_.Write(kChunk, kBlock, kA);
  run_.Free(kChunk, kA);
  run_.Dependency(0xd1);
  run_.Add(DeviceCall::kStreamUpdateCaptureDependencies, 0, 0, 1, kA,
           Status::kInvalidValue);
  run_.Update(kA, true);
  run_.Alloc(kChunk, kBlock, kA);
  EndAndInstantiate();
  EXPECT_EQ(run_.Kinds(), "reuse-race");
}

TEST_F(HazardGraphsTest, UsesOfOneNodeAreOneNode) {
  run_.Begin(kA);
  run_.Alloc(kChunk, kBlock, kA);
  run_.node = 0xd1;
  run_.Read(kChunk, 8, kA);
  run_.node = 0xd1;
  run_.Read(kChunk + 8, 8, kA);
  run_.Free(kChunk, kA);
  run_.Update(kA, true);
  run_.Dependency(0xd1);
  run_.Update(kA, false);
  run_.Alloc(kChunk, kBlock, kA);
  EndAndInstantiate();
  EXPECT_EQ(run_.Kinds(), "");
}

TEST_F(HazardGraphsTest, CaptureIntoAGraphGoesOnBehindItsNodes) {
  run_.Add(DeviceCall::kGraphCreate, kGraph);
  run_.BeginToGraph(kA, kGraph);
  run_.Alloc(kChunk, kBlock, kA);
  run_.node = 0xd1;
  run_.Write(kChunk, kBlock, kA);
  run_.Free(kChunk, kA);
  run_.End(kA, kGraph);
  run_.Dependency(0xd1);
  run_.BeginToGraph(kB, kGraph);
  run_.Alloc(kChunk, kBlock, kB);
  run_.End(kB, kGraph);
  run_.BeginToGraph(kB, kGraph);  // behind nothing
  run_.Alloc(kChunk + kBlock, kBlock, kB);
  run_.End(kB, kGraph);
  run_.Instantiate(kExec, kGraph);
  EXPECT_EQ(run_.Kinds(), "");
}

TEST_F(HazardGraphsTest, CaptureIntoAGraphBesideItsNodesIsFound) {
  run_.Add(DeviceCall::kGraphCreate, kGraph);
  run_.BeginToGraph(kA, kGraph);
  run_.Alloc(kChunk, kBlock, kA);
  run_.Write(kChunk, kBlock, kA);
  run_.Free(kChunk, kA);
  run_.End(kA, kGraph);
  run_.BeginToGraph(kB, kGraph);
  run_.Alloc(kChunk, kBlock, kB);
  run_.End(kB, kGraph);
  run_.Instantiate(kExec, kGraph);
  EXPECT_EQ(run_.Kinds(), "reuse-race");
}

TEST_F(HazardGraphsTest, CaptureIntoAGraphThatFailedLeavesTheGraphAsItWas) {
  run_.Add(DeviceCall::kGraphCreate, kGraph);
  run_.BeginToGraph(kA, kGraph);
  run_.Write(kChunk, kBlock, kA);
  run_.End(kA, 0, Status::kStreamCaptureInvalidated);
  run_.MemFree(kChunk);
  run_.Instantiate(kExec, kGraph);
  run_.Launch(kExec, kA);
  EXPECT_EQ(run_.Kinds(), "");
}

// cuda_semantics C33: what failed was never there.
TEST_F(HazardGraphsTest, CaptureThatFailedLeavesNothing) {
  run_.Begin(kA);
  Fork();
  run_.Write(kChunk, kBlock, kA);
  run_.End(kA, 0, Status::kStreamCaptureUnjoined);
  run_.Write(kChunk, kBlock, kB);  // runs
  run_.MemFree(kChunk);
  EXPECT_EQ(run_.Kinds(), "free-in-use");
}

// A refused call does not end the capture.
TEST_F(HazardGraphsTest, EndByTheWrongThreadEndsNothing) {
  run_.Begin(kA);
  run_.End(kA, 0, Status::kStreamCaptureWrongThread);
  run_.Write(kChunk, kBlock, kA);
  run_.End(kA, kGraph);
  run_.MemFree(kChunk);
  EXPECT_EQ(run_.Kinds(), "");
}

// cuda_semantics C24, R6
TEST_F(HazardGraphsTest, LaunchIsAUseInItsStream) {
  CapturePrivate(kChunk, kGraph, kExec);
  run_.Launch(kExec, kB);
  EXPECT_EQ(run_.Kinds(), "");
  run_.MemFree(kChunk);
  EXPECT_EQ(run_.Kinds(), "free-in-use");
}

TEST_F(HazardGraphsTest, LaunchesOfOneGraphFollowEachOther) {
  CapturePrivate(kChunk, kGraph, kExec);
  run_.Launch(kExec, kA);
  run_.Launch(kExec, kB);
  run_.Sync(kB);
  run_.MemFree(kChunk);
  EXPECT_EQ(run_.Kinds(), "");
}

// cuda_semantics K5, T80, T47
TEST_F(HazardGraphsTest, BlockOfOutsideFreedBeforeALaunchIsFound) {
  run_.Alloc(kChunk, kBlock, kA);
  run_.Begin(kA);
  run_.node = 0xd1;
  run_.Read(kChunk, kBlock, kA);
  EndAndInstantiate();
  run_.Launch(kExec, kA);
  EXPECT_EQ(run_.Kinds(), "");
  run_.Sync(kA);
  run_.Free(kChunk, kA);
  EXPECT_EQ(run_.Kinds(), "");
  run_.Launch(kExec, kA);
  ASSERT_EQ(run_.Kinds(), "dangling-operand");
  const HazardReport& report = run_.checker.hazards()[0];
  EXPECT_EQ(report.first.call, DeviceCall::kBlockFree);
  EXPECT_NE(report.missing.find("node 0xd1"), std::string::npos)
      << report.missing;
}

TEST_F(HazardGraphsTest, BlockOfOutsideHandedOnNamesItsNewOwner) {
  run_.Alloc(kChunk, kBlock, kA);
  run_.Begin(kA);
  run_.Read(kChunk, kBlock, kA);
  EndAndInstantiate();
  run_.Free(kChunk, kA);
  run_.Alloc(kChunk, kBlock, kB);
  const std::uint64_t owner = run_.records.size();
  run_.Launch(kExec, kA);
  ASSERT_EQ(run_.Kinds(), "dangling-operand");
  ASSERT_TRUE(run_.checker.hazards()[0].second_life);
  EXPECT_EQ(run_.checker.hazards()[0].second_life->allocated.number, owner);
}

// cuda_semantics K5: who frees it in the capture, or marks it for one of its
// streams, leaves it to the graph.
TEST_F(HazardGraphsTest, BlockOfOutsideFreedInsideIsTheGraphs) {
  run_.Alloc(kChunk, kBlock, kA);
  run_.Begin(kA);
  run_.Write(kChunk, kBlock, kA);
  run_.Free(kChunk, kA);
  EndAndInstantiate();
  run_.Launch(kExec, kA);
  EXPECT_EQ(run_.Kinds(), "");
  // Until somebody else has it.
  run_.Alloc(kChunk, kBlock, kA);
  const std::uint64_t owner = run_.records.size();
  run_.Launch(kExec, kA);
  ASSERT_EQ(run_.Kinds(), "dangling-operand");
  EXPECT_EQ(run_.checker.hazards()[0].first.number, owner);
}

TEST_F(HazardGraphsTest, BlockOfOutsideMarkedInsideIsTheGraphs) {
  run_.Alloc(kChunk, kBlock, kB);
  run_.Begin(kA);
  run_.Write(kChunk, kBlock, kA);
  run_.Mark(kChunk, kA);
  EndAndInstantiate();
  run_.Free(kChunk, kB);
  run_.Record(kEvent, kB);
  run_.Wait(kA, kEvent);
  run_.Launch(kExec, kA);
  EXPECT_EQ(run_.Kinds(), "");
}

TEST_F(HazardGraphsTest, BlockOfOutsideFreedInAnotherCaptureIsFound) {
  run_.Alloc(kChunk, kBlock, kA);
  run_.Begin(kA);
  run_.Write(kChunk, kBlock, kA);
  EndAndInstantiate();
  run_.Begin(kA);
  run_.Free(kChunk, kA);
  run_.End(kA, kGraph + 0x10);
  run_.Launch(kExec, kA);
  EXPECT_EQ(run_.Kinds(), "dangling-operand");
}

// T47
TEST_F(HazardGraphsTest, MemoryFreedBeforeALaunchIsFound) {
  run_.Begin(kA);
  run_.Read(kChunk, kBlock, kA);
  EndAndInstantiate();
  run_.MemFree(kChunk);
  run_.Launch(kExec, kA);
  EXPECT_EQ(run_.Kinds(), "dangling-operand");
}

TEST_F(HazardGraphsTest, MemoryAllocatedAgainBeforeALaunchIsFound) {
  run_.Begin(kA);
  run_.Read(kChunk, kBlock, kA);
  EndAndInstantiate();
  run_.MemFree(kChunk);
  run_.MemAlloc(kChunk, 1 << 20);
  run_.Launch(kExec, kA);
  EXPECT_EQ(run_.Kinds(), "dangling-operand");
}

// cuda_semantics M7: pinned memory is read at each replay.
TEST_F(HazardGraphsTest, PinnedBlockFreedBeforeALaunchIsFound) {
  run_.MallocHost(0x700000, 0x10000);
  run_.Alloc(0x700000, kBlock, 0);
  run_.Begin(kA);
  run_.Copy(kChunk, 0x700000, kBlock, kA);
  EndAndInstantiate();
  run_.Free(0x700000, 0);
  run_.Launch(kExec, kA);
  EXPECT_EQ(run_.Kinds(), "dangling-operand");
}

// cuda_semantics V14, T74
TEST_F(HazardGraphsTest, OtherMemoryBehindTheSameAddressesIsClean) {
  const std::uint64_t page = 2 << 20;
  run_.CreateMemory(0x51, page);
  run_.CreateMemory(0x52, page);
  run_.Map(0x10000000, page, 0x51);
  run_.Begin(kA);
  run_.Write(0x10000000, kBlock, kA);
  EndAndInstantiate();
  run_.Launch(kExec, kA);
  run_.Sync(kA);
  run_.Unmap(0x10000000, page);
  run_.Map(0x10000000, page, 0x52);
  run_.Launch(kExec, kA);
  EXPECT_EQ(run_.Kinds(), "");
  run_.Unmap(0x10000000, page);  // the second launch is still under way
  EXPECT_EQ(run_.Kinds(), "unmap-in-use");
}

TEST_F(HazardGraphsTest, NothingBehindTheAddressesIsFound) {
  const std::uint64_t page = 2 << 20;
  run_.CreateMemory(0x51, page);
  run_.Map(0x10000000, page, 0x51);
  run_.Begin(kA);
  run_.Write(0x10000000, kBlock, kA);
  EndAndInstantiate();
  run_.Unmap(0x10000000, page);
  run_.Launch(kExec, kA);
  EXPECT_EQ(run_.Kinds(), "dangling-operand");
}

// cuda_semantics K6, T48
TEST_F(HazardGraphsTest, GraphsThatShareMemoryLaunchedWithoutOrderAreFound) {
  CapturePrivate(kChunk, kGraph, kExec);
  CapturePrivate(kChunk, kGraph + 2, kExec + 2);
  run_.Launch(kExec, kA);
  run_.Launch(kExec + 2, kB);
  EXPECT_EQ(run_.Kinds(), "pool-overlap");
}

TEST_F(HazardGraphsTest, GraphsThatShareMemoryLaunchedInOrderAreClean) {
  CapturePrivate(kChunk, kGraph, kExec);
  CapturePrivate(kChunk, kGraph + 2, kExec + 2);
  for (int i = 0; i < 3; ++i) {
    run_.Launch(kExec, kA);
    run_.Launch(kExec + 2, kA);
  }
  EXPECT_EQ(run_.Kinds(), "");
}

TEST_F(HazardGraphsTest, GraphsWithMemoryOfTheirOwnNeedNoOrder) {
  CapturePrivate(kChunk, kGraph, kExec);
  CapturePrivate(kChunk + kBlock, kGraph + 2, kExec + 2);
  run_.Launch(kExec, kA);
  run_.Launch(kExec + 2, kB);
  EXPECT_EQ(run_.Kinds(), "");
}

// cuda_semantics K1, C26: private memory handed out while a graph lives.
TEST_F(HazardGraphsTest, PrivateMemoryHandedOutIsFoundAtTheNextLaunch) {
  CapturePrivate(kChunk, kGraph, kExec);
  run_.Launch(kExec, kA);
  run_.Alloc(kChunk, kBlock, kA);
  run_.Write(kChunk, kBlock, kA);
  EXPECT_EQ(run_.Kinds(), "");
  run_.Launch(kExec, kA);
  EXPECT_EQ(run_.Kinds(), "dangling-operand");
}

TEST_F(HazardGraphsTest, PrivateMemoryOfAGraphThatIsGoneIsFree) {
  CapturePrivate(kChunk, kGraph, kExec);
  run_.Launch(kExec, kA);
  run_.Add(DeviceCall::kGraphExecDestroy, kExec);
  run_.Add(DeviceCall::kGraphDestroy, kGraph);
  run_.Alloc(kChunk, kBlock, kA);
  run_.Write(kChunk, kBlock, kA);
  EXPECT_EQ(run_.Kinds(), "");
}

// The output of a graph, read outside beside the next launch of a graph that
// has another block there.
TEST_F(HazardGraphsTest, OutputReadBesideTheNextLaunchIsFound) {
  run_.Begin(kA);
  run_.Alloc(kChunk, kBlock, kA);
  run_.Write(kChunk, kBlock, kA);
  run_.Free(kChunk, kA);
  run_.Alloc(kChunk, kBlock, kA);  // the output
  run_.Write(kChunk, kBlock, kA);
  EndAndInstantiate();
  run_.Launch(kExec, kA);
  run_.Record(kEvent, kA);
  run_.Wait(kB, kEvent);
  run_.Read(kChunk, kBlock, kB);
  EXPECT_EQ(run_.Kinds(), "");
  run_.Launch(kExec, kA);
  EXPECT_EQ(run_.Kinds(), "reuse-race");
}

TEST_F(HazardGraphsTest, OutputReadInOrderWithTheLaunchesIsClean) {
  run_.Begin(kA);
  run_.Alloc(kChunk, kBlock, kA);
  run_.Write(kChunk, kBlock, kA);
  EndAndInstantiate();
  for (int i = 0; i < 3; ++i) {
    run_.Launch(kExec, kA);
    run_.Read(kChunk, kBlock, kA);
  }
  run_.Free(kChunk, kA);
  EXPECT_EQ(run_.Kinds(), "");
}

TEST_F(HazardGraphsTest, BlockUsedInACaptureAfterItsFreeIsFound) {
  run_.Begin(kA);
  run_.Alloc(kChunk, kBlock, kA);
  run_.Free(kChunk, kA);
  run_.Write(kChunk, kBlock, kA);
  EndAndInstantiate();
  EXPECT_EQ(run_.Kinds(), "graph-use-after-free");
}

// cuda_semantics P17, T62: freed on the origin while a fork still uses it.
TEST_F(HazardGraphsTest, FreeNodeBesideAForksUseIsFoundAtInstantiation) {
  run_.Begin(kA);
  run_.PoolAlloc(0x800000, kBlock, kA);
  Fork();
  run_.Write(0x800000, kBlock, kB);
  run_.PoolFree(0x800000, kA);
  Join();
  run_.End(kA, kGraph);
  EXPECT_EQ(run_.Kinds(), "");
  run_.Instantiate(kExec, kGraph);
  EXPECT_EQ(run_.Kinds(), "graph-use-after-free");
}

TEST_F(HazardGraphsTest, FreeNodeBehindTheJoinIsClean) {
  run_.Begin(kA);
  run_.PoolAlloc(0x800000, kBlock, kA);
  Fork();
  run_.Write(0x800000, kBlock, kB);
  Join();
  run_.PoolFree(0x800000, kA);
  EndAndInstantiate();
  run_.Launch(kExec, kA);
  run_.Launch(kExec, kB);
  EXPECT_EQ(run_.Kinds(), "");
}

TEST_F(HazardGraphsTest, UseBesideTheAllocatingNodeIsFound) {
  run_.Begin(kA);
  Fork();
  run_.PoolAlloc(0x800000, kBlock, kA);
  run_.Write(0x800000, kBlock, kB);
  Join();
  EndAndInstantiate();
  EXPECT_EQ(run_.Kinds(), "use-before-alloc");
}

// cuda_semantics P14: what a graph allocates and does not free.
TEST_F(HazardGraphsTest, GraphMemoryIsThereAfterALaunchAndUntilItsFree) {
  run_.Begin(kA);
  run_.PoolAlloc(0x800000, kBlock, kA);
  EndAndInstantiate();
  run_.Launch(kExec, kA);
  run_.Write(0x800000, kBlock, kA);
  run_.PoolFree(0x800000, kA);
  run_.Launch(kExec, kA);
  run_.Write(0x800000, kBlock, kA);
  EXPECT_EQ(run_.Kinds(), "");
  run_.PoolFree(0x800000, kA);
  run_.Write(0x800000, kBlock, kA);
  EXPECT_EQ(run_.Kinds(), "use-after-free");
}

TEST_F(HazardGraphsTest, GraphMemoryBeforeAnyLaunchIsFound) {
  run_.Begin(kA);
  run_.PoolAlloc(0x800000, kBlock, kA);
  EndAndInstantiate();
  run_.Write(0x800000, kBlock, kA);
  EXPECT_EQ(run_.Kinds(), "use-before-alloc");
}

TEST_F(HazardGraphsTest, GraphMemoryFreedByAnotherGraphIsGone) {
  run_.Begin(kA);
  run_.PoolAlloc(0x800000, kBlock, kA);
  EndAndInstantiate();
  run_.Begin(kA);
  run_.PoolFree(0x800000, kA);
  EndAndInstantiate(kGraph + 2, kExec + 2);
  run_.Launch(kExec, kA);
  run_.Write(0x800000, kBlock, kA);
  run_.Launch(kExec + 2, kA);
  EXPECT_EQ(run_.Kinds(), "");
  run_.Write(0x800000, kBlock, kA);
  EXPECT_EQ(run_.Kinds(), "use-after-free");
}

// cuda_semantics P14: memory freed in its graph is nobody's outside.
TEST_F(HazardGraphsTest, GraphMemoryFreedInsideIsNotThereOutside) {
  run_.Begin(kA);
  run_.PoolAlloc(0x800000, kBlock, kA);
  run_.PoolFree(0x800000, kA);
  EndAndInstantiate();
  run_.Launch(kExec, kA);
  run_.Write(0x800000, kBlock, kA);
  EXPECT_EQ(run_.Kinds(), "use-after-free");
}

// cuda_semantics P16: the driver orders nodes that share addresses.
TEST_F(HazardGraphsTest, NodesMayShareAddresses) {
  run_.Begin(kA);
  for (int i = 0; i < 2; ++i) {
    run_.PoolAlloc(0x800000, kBlock, kA);
    run_.Write(0x800000, kBlock, kA);
    run_.PoolFree(0x800000, kA);
  }
  EndAndInstantiate();
  run_.Launch(kExec, kA);
  run_.Launch(kExec, kA);
  EXPECT_EQ(run_.Kinds(), "");
}

// cuda_semantics C20: a launch into a capture.
TEST_F(HazardGraphsTest, ChildGraphBringsItsUses) {
  CapturePrivate(kChunk, kGraph, kExec);
  run_.Begin(kA);
  run_.Launch(kExec, kA);
  run_.Write(kChunk + kBlock, kBlock, kA);
  EndAndInstantiate(kGraph + 2, kExec + 2);
  run_.Add(DeviceCall::kGraphExecDestroy, kExec);
  run_.Add(DeviceCall::kGraphDestroy, kGraph);
  run_.Launch(kExec + 2, kA);
  EXPECT_EQ(run_.Kinds(), "");
  run_.Alloc(kChunk, kBlock, kA);
  run_.Launch(kExec + 2, kA);
  EXPECT_EQ(run_.Kinds(), "dangling-operand");
}

TEST_F(HazardGraphsTest, ChildGraphsThatShareMemoryNeedOrder) {
  CapturePrivate(kChunk, kGraph, kExec);
  CapturePrivate(kChunk, kGraph + 2, kExec + 2);
  run_.Begin(kA);
  Fork();
  run_.Launch(kExec, kA);
  run_.Launch(kExec + 2, kB);
  Join();
  EndAndInstantiate(kGraph + 4, kExec + 4);
  EXPECT_EQ(run_.Kinds(), "reuse-race");
}

TEST_F(HazardGraphsTest, ChildGraphsThatShareMemoryInOrderAreClean) {
  CapturePrivate(kChunk, kGraph, kExec);
  CapturePrivate(kChunk, kGraph + 2, kExec + 2);
  run_.Begin(kA);
  run_.Launch(kExec, kA);
  Fork();
  run_.Launch(kExec + 2, kB);
  Join();
  EndAndInstantiate(kGraph + 4, kExec + 4);
  run_.Launch(kExec + 4, kA);
  EXPECT_EQ(run_.Kinds(), "");
}

// cuda_semantics C28
TEST_F(HazardGraphsTest, UpdateReplacesWhatALaunchUses) {
  run_.Alloc(kChunk, kBlock, kA);
  run_.Alloc(kChunk + kBlock, kBlock, kA);
  run_.Begin(kA);
  run_.Write(kChunk, kBlock, kA);
  EndAndInstantiate();
  run_.Begin(kA);
  run_.Write(kChunk + kBlock, kBlock, kA);
  run_.End(kA, kGraph + 2);
  run_.UpdateExec(kExec, kGraph + 2);
  run_.Free(kChunk, kA);
  run_.Launch(kExec, kA);
  EXPECT_EQ(run_.Kinds(), "");
  run_.Free(kChunk + kBlock, kA);
  run_.Launch(kExec, kA);
  EXPECT_EQ(run_.Kinds(), "dangling-operand");
}

// cuda_semantics K4: an event of a capture is no proof.
TEST_F(HazardGraphsTest, QueryOfACapturedEventIsFound) {
  run_.Begin(kA);
  run_.Record(kEvent, kA);
  run_.End(kA, kGraph);
  run_.Query(kEvent);
  EXPECT_EQ(run_.Kinds(), "captured-event");
}

TEST_F(HazardGraphsTest, WaitForACapturedEventAfterItsCaptureIsFound) {
  run_.Begin(kA);
  run_.Record(kEvent, kA);
  run_.End(kA, kGraph);
  run_.Wait(kB, kEvent);
  EXPECT_EQ(run_.Kinds(), "captured-event");
}

TEST_F(HazardGraphsTest, EventRecordedAgainOutsideIsAnEventAgain) {
  run_.Begin(kA);
  run_.Record(kEvent, kA);
  run_.End(kA, kGraph);
  run_.Record(kEvent, kA);
  run_.Query(kEvent);
  run_.Wait(kB, kEvent);
  EXPECT_EQ(run_.Kinds(), "");
}

// cuda_semantics E9
TEST_F(HazardGraphsTest, ExternalEventsActWhenTheGraphIsLaunched) {
  run_.Alloc(kChunk, kBlock, kA);
  run_.Write(kChunk, kBlock, kA);
  run_.Free(kChunk, 0);
  run_.Record(kEvent, kA);
  run_.Begin(kB);
  run_.Wait(kB, kEvent, 1);
  run_.Write(kChunk + kBlock, kBlock, kB);
  run_.Record(kOther, kB, 1);
  run_.End(kB, kGraph);
  run_.Instantiate(kExec, kGraph);
  run_.Launch(kExec, kB);
  run_.Alloc(kChunk, kBlock, kB);  // behind the wait
  run_.SyncEvent(kOther);
  run_.MemFree(kChunk);
  EXPECT_EQ(run_.Kinds(), "");
}

// cuda_semantics C31: several captures at once.
TEST_F(HazardGraphsTest, CapturesInTwoThreadsDoNotMix) {
  run_.Begin(kA);
  run_.thread = 2;
  run_.Begin(kB);
  run_.Alloc(kChunk, kBlock, kB);
  run_.thread = 1;
  run_.Alloc(kChunk + kBlock, kBlock, kA);
  run_.Write(kChunk + kBlock, kBlock, kA);
  run_.thread = 2;
  run_.Write(kChunk, kBlock, kB);
  run_.End(kB, kGraph + 2);
  run_.thread = 1;
  run_.End(kA, kGraph);
  run_.Instantiate(kExec, kGraph);
  run_.Instantiate(kExec + 2, kGraph + 2);
  run_.Launch(kExec, kA);
  run_.Launch(kExec + 2, kB);
  EXPECT_EQ(run_.Kinds(), "");
}

// cuda_semantics K4c: a mark in a capture stands for no work outside.
TEST_F(HazardGraphsTest, MarkInACaptureIsNoUseOutside) {
  run_.Alloc(kChunk, kBlock, kA);
  run_.Write(kChunk + kBlock, 8, kB);
  run_.Begin(kB);
  run_.Read(kChunk + kBlock, 8, kB);
  run_.Mark(kChunk, kB);
  run_.End(kB, kGraph);
  run_.Free(kChunk, kA);
  run_.Alloc(kChunk, kBlock, kA);
  EXPECT_EQ(run_.Kinds(), "");
}

}  // namespace
}  // namespace strata
