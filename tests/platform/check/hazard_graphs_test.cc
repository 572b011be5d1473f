// Hazards of graph launches (cuda_semantics.md §5.3): freed operands, graphs
// that share memory, and updates.

#include <gtest/gtest.h>

#include <cstdint>

#include "strata/tests/platform/check/hazard_fixture.h"

namespace strata::check {
namespace {

class HazardGraphsTest : public HazardFixture {};

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

// cuda_semantics K5: a free in the capture, or a mark for one of its streams,
// leaves the block to the graph.
TEST_F(HazardGraphsTest, BlockOfOutsideFreedInsideIsTheGraphs) {
  run_.Alloc(kChunk, kBlock, kA);
  run_.Begin(kA);
  run_.Write(kChunk, kBlock, kA);
  run_.Free(kChunk, kA);
  EndAndInstantiate();
  run_.Launch(kExec, kA);
  EXPECT_EQ(run_.Kinds(), "");
  // Until the block has another owner.
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
  run_.Order(kEvent, kB, kA);
  run_.Launch(kExec, kA);
  EXPECT_EQ(run_.Kinds(), "");
}

// A graph repeats its uses at each launch, so an event cannot end them.
TEST_F(HazardGraphsTest, BlockOfOutsideMarkedInsideUpToAnEventIsTheGraphs) {
  run_.Record(kOther, kA);
  run_.Alloc(kChunk, kBlock, kB);
  run_.Begin(kA);
  run_.Write(kChunk, kBlock, kA);
  run_.Add(DeviceCall::kBlockMark, kChunk, 0, kOther, kA);
  EndAndInstantiate();
  run_.Free(kChunk, kB);
  run_.Order(kEvent, kB, kA);
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
  run_.MallocHost(kPinned, 0x10000);
  run_.Alloc(kPinned, kBlock, 0);
  run_.Begin(kA);
  run_.Copy(kChunk, kPinned, kBlock, kA);
  EndAndInstantiate();
  run_.Free(kPinned, 0);
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
  run_.Unmap(0x10000000, page);  // the second launch is still running
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

// cuda_semantics C24, K6: two execs of one graph may run at once, and share its
// temporaries.
TEST_F(HazardGraphsTest, ExecsOfOneGraphLaunchedWithoutOrderAreFound) {
  CapturePrivate(kChunk, kGraph, kExec);
  run_.Instantiate(kExec + 2, kGraph);
  run_.Launch(kExec, kA);
  run_.Launch(kExec + 2, kB);
  EXPECT_EQ(run_.Kinds(), "pool-overlap");
}

TEST_F(HazardGraphsTest, ExecsOfOneGraphLaunchedInOrderAreClean) {
  CapturePrivate(kChunk, kGraph, kExec);
  run_.Instantiate(kExec + 2, kGraph);
  run_.Launch(kExec, kA);
  run_.Order(kEvent, kA, kB);
  run_.Launch(kExec + 2, kB);
  EXPECT_EQ(run_.Kinds(), "");
}

// The program is responsible for the order with another graph that uses the
// output.
TEST_F(HazardGraphsTest, OutputWrittenByAnotherGraphBesideItIsClean) {
  run_.Begin(kA);
  run_.AllocWrite(kChunk, kBlock, kA);
  EndAndInstantiate();
  run_.Begin(kA);
  run_.Write(kChunk, kBlock, kA);
  EndAndInstantiate(kGraph + 2, kExec + 2);
  run_.Launch(kExec, kA);
  run_.Launch(kExec + 2, kB);
  EXPECT_EQ(run_.Kinds(), "");
}

// Likewise for blocks from outside.
TEST_F(HazardGraphsTest, ExecsThatWriteABlockOfOutsideAreClean) {
  run_.Alloc(kChunk, kBlock, kA);
  run_.Begin(kA);
  run_.Write(kChunk, kBlock, kA);
  EndAndInstantiate();
  run_.Instantiate(kExec + 2, kGraph);
  run_.Launch(kExec, kA);
  run_.Launch(kExec + 2, kB);
  EXPECT_EQ(run_.Kinds(), "");
}

// cuda_semantics K1, C26: private memory is allocated outside while a graph
// lives.
TEST_F(HazardGraphsTest, PrivateMemoryHandedOutIsFoundAtTheNextLaunch) {
  CapturePrivate(kChunk, kGraph, kExec);
  run_.Launch(kExec, kA);
  WriteOnA();
  EXPECT_EQ(run_.Kinds(), "");
  run_.Launch(kExec, kA);
  EXPECT_EQ(run_.Kinds(), "dangling-operand");
}

TEST_F(HazardGraphsTest, PrivateMemoryOfAGraphThatIsGoneIsFree) {
  CapturePrivate(kChunk, kGraph, kExec);
  run_.Launch(kExec, kA);
  run_.Add(DeviceCall::kGraphExecDestroy, kExec);
  run_.Add(DeviceCall::kGraphDestroy, kGraph);
  WriteOnA();
  EXPECT_EQ(run_.Kinds(), "");
}

// The output of a graph is read outside, unordered with the next launch of a
// graph with another block there.
TEST_F(HazardGraphsTest, OutputReadBesideTheNextLaunchIsFound) {
  run_.Begin(kA);
  UseOnA();
  run_.Alloc(kChunk, kBlock, kA);  // the output
  run_.Write(kChunk, kBlock, kA);
  EndAndInstantiate();
  run_.Launch(kExec, kA);
  run_.Order(kEvent, kA, kB);
  run_.Read(kChunk, kBlock, kB);
  EXPECT_EQ(run_.Kinds(), "");
  run_.Launch(kExec, kA);
  EXPECT_EQ(run_.Kinds(), "reuse-race");
}

TEST_F(HazardGraphsTest, OutputReadInOrderWithTheLaunchesIsClean) {
  run_.Begin(kA);
  WriteOnA();
  EndAndInstantiate();
  for (int i = 0; i < 3; ++i) {
    run_.Launch(kExec, kA);
    run_.Read(kChunk, kBlock, kA);
  }
  run_.Free(kChunk, kA);
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

}  // namespace
}  // namespace strata::check
