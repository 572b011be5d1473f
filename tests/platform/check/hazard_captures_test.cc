// Hazards in a capture (cuda_semantics.md §5.3): the order of its nodes, its
// events, and captures that fail.

#include <gtest/gtest.h>

#include "strata/tests/platform/check/hazard_fixture.h"

namespace strata::check {
namespace {

class HazardCapturesTest : public HazardFixture {};

TEST_F(HazardCapturesTest, NothingRunsInACapture) {
  run_.Begin(kA);
  run_.Write(kChunk, kBlock, kA);
  run_.End(kA, kGraph);
  run_.MemFree(kChunk);
  EXPECT_EQ(run_.Kinds(), "");
}

// T79, cuda_semantics K2
TEST_F(HazardCapturesTest, ReuseByADescendantIsClean) {
  run_.Begin(kA);
  UseOnA();
  Fork();
  ReuseOnB();
  Join();
  EndAndInstantiate();
  run_.Launch(kExec, kA);
  run_.Launch(kExec, kB);
  EXPECT_EQ(run_.Kinds(), "");
}

// T79: the fork is older than the use.
TEST_F(HazardCapturesTest, ReuseBesideAnAncestorIsFoundAtInstantiation) {
  run_.Begin(kA);
  Fork();
  UseOnA();
  ReuseOnB();
  Join();
  run_.End(kA, kGraph);
  EXPECT_EQ(run_.Kinds(), "");
  run_.Instantiate(kExec, kGraph);
  EXPECT_EQ(run_.Kinds(), "reuse-race");
  // The allocation and the use. A second instantiation adds nothing.
  EXPECT_EQ(run_.checker.hazard_count(), 2U);
  run_.Instantiate(kExec + 1, kGraph);
  EXPECT_EQ(run_.checker.hazard_count(), 2U);
}

// cuda_semantics K2: a stream with replaced dependencies starts anew.
TEST_F(HazardCapturesTest, ReplacedDependenciesTakeTheOrderOfAStreamAway) {
  run_.Begin(kA);
  UseOnA();
  run_.Update(kA, true);
  WriteOnA();
  EndAndInstantiate();
  EXPECT_EQ(run_.Kinds(), "reuse-race");
}

TEST_F(HazardCapturesTest, NamedDependenciesGiveOrder) {
  run_.Begin(kA);
  run_.Alloc(kChunk, kBlock, kA);
  run_.node = 0xd1;
  run_.Write(kChunk, kBlock, kA);
  run_.Free(kChunk, kA);
  run_.Update(kA, true);
  run_.Dependency(0xd1);
  run_.Update(kA, false);
  WriteOnA();
  EndAndInstantiate();
  EXPECT_EQ(run_.Kinds(), "");
}

TEST_F(HazardCapturesTest, NodesNamedForACallThatFailedAreForgotten) {
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

TEST_F(HazardCapturesTest, UsesOfOneNodeAreOneNode) {
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

TEST_F(HazardCapturesTest, CaptureIntoAGraphGoesOnBehindItsNodes) {
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
  run_.BeginToGraph(kB, kGraph);  // without predecessors
  run_.Alloc(kChunk + kBlock, kBlock, kB);
  run_.End(kB, kGraph);
  run_.Instantiate(kExec, kGraph);
  EXPECT_EQ(run_.Kinds(), "");
}

TEST_F(HazardCapturesTest, CaptureIntoAGraphBesideItsNodesIsFound) {
  run_.Add(DeviceCall::kGraphCreate, kGraph);
  run_.BeginToGraph(kA, kGraph);
  UseOnA();
  run_.End(kA, kGraph);
  run_.BeginToGraph(kB, kGraph);
  run_.Alloc(kChunk, kBlock, kB);
  run_.End(kB, kGraph);
  run_.Instantiate(kExec, kGraph);
  EXPECT_EQ(run_.Kinds(), "reuse-race");
}

TEST_F(HazardCapturesTest, CaptureIntoAGraphThatFailedLeavesTheGraphAsItWas) {
  run_.Add(DeviceCall::kGraphCreate, kGraph);
  run_.BeginToGraph(kA, kGraph);
  run_.Write(kChunk, kBlock, kA);
  run_.End(kA, 0, Status::kStreamCaptureInvalidated);
  run_.MemFree(kChunk);
  run_.Instantiate(kExec, kGraph);
  run_.Launch(kExec, kA);
  EXPECT_EQ(run_.Kinds(), "");
}

// cuda_semantics C33: a failed capture leaves no effect.
TEST_F(HazardCapturesTest, CaptureThatFailedLeavesNothing) {
  run_.Begin(kA);
  Fork();
  run_.Write(kChunk, kBlock, kA);
  run_.End(kA, 0, Status::kStreamCaptureUnjoined);
  run_.Write(kChunk, kBlock, kB);  // runs
  run_.MemFree(kChunk);
  EXPECT_EQ(run_.Kinds(), "free-in-use");
}

// The call is refused, and ends the capture: later work runs.
TEST_F(HazardCapturesTest, EndByTheWrongThreadEndsTheCapture) {
  run_.Begin(kA);
  run_.End(kA, 0, Status::kStreamCaptureWrongThread);
  run_.Write(kChunk, kBlock, kA);
  run_.MemFree(kChunk);
  EXPECT_EQ(run_.Kinds(), "free-in-use");
}

TEST_F(HazardCapturesTest, BlockUsedInACaptureAfterItsFreeIsFound) {
  run_.Begin(kA);
  run_.Alloc(kChunk, kBlock, kA);
  run_.Free(kChunk, kA);
  run_.Write(kChunk, kBlock, kA);
  EndAndInstantiate();
  EXPECT_EQ(run_.Kinds(), "graph-use-after-free");
}

// cuda_semantics K4: a captured event proves nothing.
TEST_F(HazardCapturesTest, QueryOfACapturedEventIsFound) {
  run_.Begin(kA);
  run_.Record(kEvent, kA);
  run_.End(kA, kGraph);
  run_.Query(kEvent);
  EXPECT_EQ(run_.Kinds(), "captured-event");
}

TEST_F(HazardCapturesTest, WaitForACapturedEventAfterItsCaptureIsFound) {
  run_.Begin(kA);
  run_.Record(kEvent, kA);
  run_.End(kA, kGraph);
  run_.Wait(kB, kEvent);
  EXPECT_EQ(run_.Kinds(), "captured-event");
}

TEST_F(HazardCapturesTest, EventRecordedAgainOutsideIsAnEventAgain) {
  run_.Begin(kA);
  run_.Record(kEvent, kA);
  run_.End(kA, kGraph);
  run_.Record(kEvent, kA);
  run_.Query(kEvent);
  run_.Wait(kB, kEvent);
  EXPECT_EQ(run_.Kinds(), "");
}

// cuda_semantics E9
TEST_F(HazardCapturesTest, ExternalEventsActWhenTheGraphIsLaunched) {
  WriteOnA();
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

TEST_F(HazardCapturesTest, ExternalEventStandsForTheNodesBeforeItAlone) {
  const std::uint64_t later = 0x900000;
  run_.MemAlloc(later, kBlock);
  run_.Begin(kA);
  run_.Write(kChunk, kBlock, kA);
  run_.Record(kEvent, kA, kEventExternal);
  run_.Write(later, kBlock, kA);
  EndAndInstantiate();
  run_.Launch(kExec, kA);
  run_.SyncEvent(kEvent);
  run_.MemFree(kChunk);
  EXPECT_EQ(run_.Kinds(), "");
  run_.MemFree(later);
  EXPECT_EQ(run_.Kinds(), "free-in-use");
}

TEST_F(HazardCapturesTest, LaterExternalEventStandsForMoreNodes) {
  const std::uint64_t later = 0x900000;
  run_.MemAlloc(later, kBlock);
  run_.Begin(kA);
  run_.Write(kChunk, kBlock, kA);
  run_.Record(kEvent, kA, kEventExternal);
  run_.Write(later, kBlock, kA);
  run_.Record(kOther, kA, kEventExternal);
  EndAndInstantiate();
  run_.Launch(kExec, kA);
  run_.SyncEvent(kOther);
  run_.MemFree(kChunk);
  run_.MemFree(later);
  EXPECT_EQ(run_.Kinds(), "");
}

TEST_F(HazardCapturesTest, ExternalWaitOrdersTheNodesBehindItAlone) {
  const std::uint64_t before = kChunk + kBlock;
  run_.AllocWriteFree(kChunk, kBlock, kB);
  run_.AllocWriteFree(before, kBlock, kB);
  run_.Record(kEvent, kB);
  run_.Begin(kA);
  run_.AllocWrite(before, kBlock, kA);
  run_.Wait(kA, kEvent, kEventExternal);
  run_.AllocWrite(kChunk, kBlock, kA);
  EndAndInstantiate();
  run_.Launch(kExec, kA);
  ASSERT_EQ(run_.Kinds(), "reuse-race");
  EXPECT_EQ(run_.checker.hazard_count(), 1U);
  EXPECT_EQ(run_.checker.hazards()[0].ptr, before);
  // All nodes precede the next work of the stream.
  run_.Launch(kExec, kA);
  EXPECT_EQ(run_.checker.hazard_count(), 1U);
}

// It waits for the work that the event covers at the launch.
TEST_F(HazardCapturesTest, ExternalWaitForAnEventOfAFormerCaptureIsANode) {
  run_.Begin(kA);
  run_.Record(kEvent, kA);
  run_.End(kA, kGraph);
  run_.Begin(kA);
  run_.Wait(kA, kEvent, kEventExternal);
  run_.Write(kChunk, kBlock, kA);
  EndAndInstantiate();
  EXPECT_EQ(run_.Kinds(), "");
  run_.Write(kChunk, kBlock, kB);
  run_.Record(kEvent, kB);
  run_.Launch(kExec, kA);
  run_.Sync(kA);
  run_.MemFree(kChunk);
  EXPECT_EQ(run_.Kinds(), "");
}

// cuda_semantics C31: several captures at once.
TEST_F(HazardCapturesTest, CapturesInTwoThreadsDoNotMix) {
  run_.Begin(kA);
  run_.thread = 2;
  run_.Begin(kB);
  run_.Alloc(kChunk, kBlock, kB);
  run_.thread = 1;
  run_.AllocWrite(kChunk + kBlock, kBlock, kA);
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
TEST_F(HazardCapturesTest, MarkInACaptureIsNoUseOutside) {
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
}  // namespace strata::check
