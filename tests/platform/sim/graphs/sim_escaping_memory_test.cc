// Memory of a graph that is live after a launch, on the simulated device: uses
// and frees in streams and in other graphs.

#include <gtest/gtest.h>

#include <cstdint>

#include "strata/tests/platform/sim/graphs/sim_graph_memory_fixture.h"

namespace strata::sim {
namespace {

using Kind = GraphMemAttributeKind;

// cuda_semantics P14, {in G, outside}: live from the call of the launch on.
TEST_F(SimGraphMemoryTest, EscapingMemoryIsUsedAndFreedInStreams) {
  const Stream stream = NewStream();
  DevicePtr ptr = 0;
  const GraphExec exec = Escaping(2, &ptr);
  EXPECT_EQ(device().MemsetAsync(ptr, 0, 512, stream), Status::kInvalidValue);
  EXPECT_EQ(device().FreeAsync(ptr, stream), Status::kInvalidValue);
  Launch(exec, stream);
  EXPECT_EQ(device().Leaks().graph_allocations, 1u);
  EXPECT_EQ(device().Leaks().graph_allocation_bytes, 2 * kFrameBytes);
  EXPECT_EQ(device().MemsetAsync(ptr, 0, 512, stream), Status::kSuccess);
  PointerInfo info;
  Sync(stream);
  ASSERT_EQ(device().PointerAttributes(ptr, &info), Status::kSuccess);
  EXPECT_EQ(info.type, MemoryType::kDevice);
  Give(ptr, stream);
  EXPECT_EQ(device().FreeAsync(ptr, stream), Status::kInvalidValue);
  EXPECT_EQ(device().MemsetAsync(ptr, 0, 512, stream), Status::kInvalidValue);
  EXPECT_EQ(device().Leaks().graph_allocations, 0u);
  Launch(exec, stream);
  EXPECT_EQ(device().MemFree(ptr), Status::kSuccess);
}

// No other launch uses the frames of live memory, in any order.
TEST_F(SimGraphMemoryTest, LiveMemoryKeepsItsFrames) {
  const Stream stream = NewStream();
  DevicePtr ptr = 0;
  Launch(Escaping(10, &ptr), stream);
  Launch(Closed(10), stream);
  EXPECT_EQ(Frames(Kind::kReservedCurrent), 20u);
  Give(ptr, stream);
  Launch(Closed(20), stream);
  EXPECT_EQ(Frames(Kind::kReservedCurrent), 20u);
  Sync(stream);
}

// The address belongs to the exec: a launch elsewhere waits for the free.
TEST_F(SimGraphMemoryTest, LaunchWaitsForTheFreeOfWhatItAllocates) {
  const Stream first = NewStream();
  const Stream second = NewStream();
  DevicePtr ptr = 0;
  const GraphExec exec = Escaping(1, &ptr);
  Launch(exec, first);
  Mark(first, 'u');
  Give(ptr, first);
  Launch(exec, second);
  Sync(second);
  EXPECT_EQ(log_, "u");
  Give(ptr, second);
}

// cuda_semantics P14: the remaining memory of the last launch leaks.
TEST_F(SimGraphMemoryTest, AutoFreeOnLaunchFreesLeftovers) {
  const Stream stream = NewStream();
  DevicePtr ptr = 0;
  const GraphExec exec = Escaping(3, &ptr, kGraphAutoFreeOnLaunch);
  for (int i = 0; i < 3; ++i) Launch(exec, stream);
  EXPECT_EQ(Frames(Kind::kReservedCurrent), 3u);
  EXPECT_EQ(device().Leaks().graph_allocations, 1u);
  Give(ptr, stream);
  Sync(stream);
  EXPECT_EQ(device().GraphInstantiate(nullptr, graph_, 0),
            Status::kInvalidValue);
  GraphExec other;
  for (const unsigned unknown : {2U, 4U, 16U, 2U | kGraphUseNodePriority}) {
    EXPECT_EQ(device().GraphInstantiate(&other, graph_, unknown),
              Status::kInvalidValue);
  }
}

// cudaGraphInstantiateFlagUseNodePriority does not change the order.
TEST_F(SimGraphMemoryTest, NodePriorityIsAHint) {
  const Stream stream = NewStream();
  DevicePtr ptr = 0;
  const GraphExec exec =
      Escaping(1, &ptr, kGraphAutoFreeOnLaunch | kGraphUseNodePriority);
  for (int i = 0; i < 2; ++i)
    Launch(exec, stream);  // the other flag takes effect
  Give(ptr, stream);
  Sync(stream);
}

// cuda_semantics P14, {in G, in H}: a launch of H needs a live allocation.
TEST_F(SimGraphMemoryTest, OtherGraphFreesOnceForEachLaunch) {
  const Stream stream = NewStream();
  DevicePtr ptr = 0;
  const GraphExec allocates = Escaping(1, &ptr);
  const Graph first = graph_;
  Begin(stream);
  Touch(ptr, stream);
  Give(ptr, stream);
  EXPECT_EQ(device().FreeAsync(ptr, stream), Status::kInvalidValue);
  const GraphExec frees = Instantiate(End(stream));
  EXPECT_EQ(device().GraphLaunch(frees, stream), Status::kInvalidValue);
  Launch(allocates, stream);
  Launch(frees, stream);
  EXPECT_EQ(device().GraphLaunch(frees, stream), Status::kInvalidValue);
  EXPECT_EQ(device().Leaks().graph_allocations, 0u);
  Launch(allocates, stream);
  Launch(frees, stream);
  Sync(stream);
  // Another graph has freed the memory, so no node of the first graph may free
  // it.
  CaptureInfo info;
  ASSERT_EQ(device().StreamBeginCaptureToGraph(stream, first, nullptr, 0,
                                               CaptureMode::kRelaxed),
            Status::kSuccess);
  EXPECT_EQ(device().FreeAsync(ptr, stream), Status::kInvalidValue);
  End(stream);
}

// cuda_semantics P15: addresses and frames outlive graph and exec.
TEST_F(SimGraphMemoryTest, EscapingMemoryOutlivesItsGraph) {
  const Stream stream = NewStream();
  DevicePtr ptr = 0;
  const GraphExec exec = Escaping(1, &ptr);
  Launch(exec, stream);
  ASSERT_EQ(device().GraphExecDestroy(exec), Status::kSuccess);
  ASSERT_EQ(device().GraphDestroy(graph_), Status::kSuccess);
  Sync(stream);
  ASSERT_EQ(device().GraphMemTrim(), Status::kSuccess);
  Touch(ptr, stream);
  Sync(stream);
  EXPECT_EQ(Frames(Kind::kUsedCurrent), 1u);
  Give(ptr, stream);
  Sync(stream);
  ASSERT_EQ(device().GraphMemTrim(), Status::kSuccess);
  EXPECT_EQ(FreeFrames(), kFrames);
  EXPECT_EQ(Frames(Kind::kUsedHigh), 1u);
}

TEST_F(SimGraphMemoryTest, AnotherGraphFreesWhatOutlivedItsGraph) {
  const Stream stream = NewStream();
  DevicePtr ptr = 0;
  const GraphExec exec = Escaping(1, &ptr);
  Launch(exec, stream);
  ASSERT_EQ(device().GraphExecDestroy(exec), Status::kSuccess);
  ASSERT_EQ(device().GraphDestroy(graph_), Status::kSuccess);
  Sync(stream);
  Begin(stream);
  Give(ptr, stream);
  Launch(Instantiate(End(stream)), stream);
  Sync(stream);
  EXPECT_EQ(device().Leaks().graph_allocations, 0u);
  Begin(stream);
  EXPECT_EQ(device().FreeAsync(ptr, stream), Status::kInvalidValue);
  End(stream);
}

}  // namespace
}  // namespace strata::sim
