// Memory nodes of graphs on the simulated device: the complete release of
// frames, and the choices of the simulated device. The conformance suite covers
// the requirements for all devices.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "strata/tests/platform/sim/graphs/sim_graph_memory_fixture.h"

namespace strata::sim {
namespace {

using Kind = GraphMemAttributeKind;

TEST_F(SimGraphMemoryTest, FramesAreTakenAtTheFirstLaunch) {
  const Stream stream = NewStream();
  const GraphExec exec = Closed(10);
  EXPECT_EQ(FreeFrames(), kFrames);
  for (int i = 0; i < 3; ++i) Launch(exec, stream);
  EXPECT_EQ(FreeFrames(), kFrames - 10);
  EXPECT_EQ(Frames(Kind::kReservedCurrent), 10u);
  EXPECT_EQ(Frames(Kind::kUsedCurrent), 10u);
  Sync(stream);
  EXPECT_EQ(FreeFrames(), kFrames - 10);
}

// cuda_semantics P16: the maximum, not the sum.
TEST_F(SimGraphMemoryTest, LaunchesInOneStreamShareFrames) {
  const Stream stream = NewStream();
  for (const std::uint64_t frames : {10U, 30U, 20U}) {
    Launch(Closed(frames), stream);
  }
  EXPECT_EQ(Frames(Kind::kReservedCurrent), 30u);
  EXPECT_EQ(Frames(Kind::kReservedHigh), 30u);
  Sync(stream);
}

TEST_F(SimGraphMemoryTest, OrderByEventsIsEnoughToShare) {
  const Stream first = NewStream();
  const Stream second = NewStream();
  Launch(Closed(10), first);
  WaitFor(second, Record(first));
  Launch(Closed(10), second);
  EXPECT_EQ(Frames(Kind::kReservedCurrent), 10u);
  Sync(second);
}

TEST_F(SimGraphMemoryTest, LaunchesThatAreNotOrderedDoNotShare) {
  const Stream first = NewStream();
  const Stream second = NewStream();
  Launch(Closed(10), first);
  Launch(Closed(10), second);
  EXPECT_EQ(Frames(Kind::kReservedCurrent), 20u);
  Sync(first);
  Sync(second);
  // Both are complete: a third one reuses the frames.
  Launch(Closed(20), NewStream());
  EXPECT_EQ(Frames(Kind::kReservedCurrent), 20u);
}

// Frames move to another exec and return under their old address.
TEST_F(SimGraphMemoryTest, ExecMovesToOtherFramesWhenItsOwnAreBusy) {
  const Stream first = NewStream();
  const Stream second = NewStream();
  const GraphExec moves = Closed(4);
  Launch(moves, first);
  const GraphExec other = Closed(4);
  Launch(other, first);   // shares the four
  Launch(moves, second);  // not ordered behind `other`
  EXPECT_EQ(Frames(Kind::kReservedCurrent), 8u);
  ASSERT_EQ(device().Synchronize(), Status::kSuccess);
}

TEST_F(SimGraphMemoryTest, FramesRunOutExactly) {
  const Stream stream = NewStream();
  const GraphExec fits = Closed(kFrames);
  DevicePtr ptr = 0;
  ASSERT_EQ(device().MemAlloc(&ptr, kFrameBytes), Status::kSuccess);
  EXPECT_EQ(device().GraphLaunch(fits, stream), Status::kMemoryAllocation);
  EXPECT_EQ(FreeFrames(), kFrames - 1);
  EXPECT_EQ(Frames(Kind::kReservedCurrent), 0u);
  ASSERT_EQ(device().MemFree(ptr), Status::kSuccess);
  Launch(fits, stream);
  Sync(stream);
  EXPECT_EQ(FreeFrames(), 0u);
}

TEST_F(SimGraphMemoryTest, MoreThanTheDeviceHasIsRefusedAtTheCapture) {
  const Stream stream = NewStream();
  MemPool pool;
  ASSERT_EQ(device().DefaultMemPool(&pool), Status::kSuccess);
  Begin(stream);
  DevicePtr ptr = 77;
  EXPECT_EQ(device().MallocFromPoolAsync(&ptr, (kFrames + 1) * kFrameBytes,
                                         pool, stream),
            Status::kMemoryAllocation);
  EXPECT_EQ(ptr, 77u);
  End(stream);
}

// cuda_semantics P12: idle memory of pools is no reason to fail.
TEST_F(SimGraphMemoryTest, LaunchTakesIdleChunksOfPools) {
  const Stream stream = NewStream();
  MemPool pool;
  ASSERT_EQ(device().DefaultMemPool(&pool), Status::kSuccess);
  ASSERT_EQ(device().PoolSetAttribute(pool, PoolAttribute::kReleaseThreshold,
                                      ~std::uint64_t{0}),
            Status::kSuccess);
  Give(Take(40, stream), stream);
  Sync(stream);
  EXPECT_EQ(FreeFrames(), kFrames - 40);
  Launch(Closed(60), stream);
  Sync(stream);
}

TEST_F(SimGraphMemoryTest, TrimKeepsWhatALaunchUnderWayNeeds) {
  const Stream stream = NewStream();
  const GraphExec exec = Closed(10);
  Launch(exec, stream);
  ASSERT_EQ(device().GraphMemTrim(), Status::kSuccess);
  EXPECT_EQ(Frames(Kind::kReservedCurrent), 10u);
  Sync(stream);
  ASSERT_EQ(device().GraphMemTrim(), Status::kSuccess);
  EXPECT_EQ(Frames(Kind::kReservedCurrent), 0u);
  EXPECT_EQ(FreeFrames(), kFrames);
  Launch(exec, stream);
  Sync(stream);
}

TEST_F(SimGraphMemoryTest, SmallAllocationsShareAFrame) {
  const Stream stream = NewStream();
  Begin(stream);
  std::vector<DevicePtr> ptrs;
  for (int i = 0; i < 100; ++i) ptrs.push_back(TakeBytes(1000, stream));
  for (const DevicePtr ptr : ptrs) {
    Touch(ptr, stream);
    Give(ptr, stream);
  }
  Launch(Instantiate(End(stream)), stream);
  EXPECT_EQ(Frames(Kind::kReservedCurrent), 1u);
  Sync(stream);
}

// cuda_semantics P13: only between its allocation and its free.
TEST_F(SimGraphMemoryTest, WorkOutsideTheLifeOfAnAllocationFails) {
  const Stream stream = NewStream();
  Begin(stream);
  const DevicePtr ptr = Take(1, stream);
  Give(ptr, stream);
  Touch(ptr, stream);  // behind the free
  const GraphExec exec = Instantiate(End(stream));
  Launch(exec, stream);
  EXPECT_EQ(device().StreamSynchronize(stream), Status::kIllegalAddress);
}

TEST_F(SimGraphMemoryTest, FreeHasToComeBehindItsAllocation) {
  const Stream stream = NewStream();
  const Stream fork = NewStream();
  const Event event = NewEvent();
  Begin(stream);
  ASSERT_EQ(device().EventRecord(event, stream, 0), Status::kSuccess);
  WaitFor(fork, event);
  const DevicePtr ptr = Take(1, stream);
  EXPECT_EQ(device().FreeAsync(ptr, fork), Status::kInvalidValue);
  Give(ptr, stream);
  End(stream);
}

// A graph may free only memory of graphs: C16.
TEST_F(SimGraphMemoryTest, FreeingOtherMemoryIsRefused) {
  const Stream stream = NewStream();
  const DevicePtr ptr = Take(1, stream);
  Begin(stream);
  EXPECT_EQ(device().FreeAsync(ptr, stream), Status::kInvalidValue);
  End(stream);
  Give(ptr, stream);
}

// cuda_semantics P15.
TEST_F(SimGraphMemoryTest, GraphsWithMemoryAreNotUpdated) {
  const GraphExec exec = Closed(1);
  EXPECT_EQ(device().GraphExecUpdate(exec, graph_),
            Status::kGraphExecUpdateFailure);
}

// A failed capture undoes its changes to a graph of the caller.
TEST_F(SimGraphMemoryTest, FailedCaptureToGraphUndoesItsMemoryNodes) {
  const Stream stream = NewStream();
  Begin(stream);
  const DevicePtr ptr = Take(1, stream);
  CaptureInfo info;
  ASSERT_EQ(device().StreamCaptureInfo(stream, &info), Status::kSuccess);
  const Graph graph = End(stream);
  ASSERT_EQ(
      device().StreamBeginCaptureToGraph(
          stream, graph, info.dependencies.data(), 1, CaptureMode::kRelaxed),
      Status::kSuccess);
  Give(ptr, stream);
  Take(1, stream);
  EXPECT_EQ(device().StreamQuery(stream), Status::kStreamCaptureUnsupported);
  End(stream, Status::kStreamCaptureInvalidated);
  const GraphExec exec = Instantiate(graph);
  Launch(exec, stream);
  EXPECT_EQ(device().Leaks().graph_allocations, 1u);
  Give(ptr, stream);
  Sync(stream);
}

// The access rights of the node are those of the pool at the capture: P13, P10.
TEST_F(SimGraphMemoryTest, RightsAreThoseOfThePoolAtTheCapture) {
  Build("inline");
  const Stream stream = NewStream();
  MemPool pool;
  ASSERT_EQ(device().DefaultMemPool(&pool), Status::kSuccess);
  AccessDescriptor access;
  access.location.id = 1;
  DevicePtr before = 0;
  DevicePtr after = 0;
  const GraphExec closed_to_peers = Escaping(1, &before);
  ASSERT_EQ(device().PoolSetAccess(pool, &access, 1), Status::kSuccess);
  const GraphExec open_to_peers = Escaping(1, &after);
  Launch(closed_to_peers, stream);
  Launch(open_to_peers, stream);
  const Stream far = NewStream(kStreamNonBlocking, 1);
  EXPECT_EQ(device(1).MemsetAsync(after, 0, 512, far), Status::kSuccess);
  EXPECT_EQ(device(1).MemsetAsync(before, 0, 512, far), Status::kInvalidValue);
}

// cuda_semantics D4: each launch repeats the allocation.
TEST_F(SimGraphMemoryTest, PoisonShowsFreshAndFreedMemory) {
  PlatformOptions options = SimOptions(1, kFrames);
  options.sim_data = "poison";
  options.sim_progress = "inline";
  Build(options);
  const Stream stream = NewStream();
  auto* words = reinterpret_cast<unsigned char*>(NewWord());
  Begin(stream);
  const DevicePtr ptr = Take(1, stream);
  ASSERT_EQ(device().MemcpyAsync(At(words), ptr, 8, stream), Status::kSuccess);
  Touch(ptr, stream);
  Give(ptr, stream);
  const GraphExec exec = Instantiate(End(stream));
  for (int i = 0; i < 2; ++i) {
    Launch(exec, stream);
    EXPECT_EQ(words[0], kFreshByte);
  }
}

// cuda_semantics.md D8: host functions also stand for kernels on graph memory.
TEST_F(SimGraphMemoryTest, HostFunctionsSeeTheMemoryOfTheirGraph) {
  PlatformOptions options = SimOptions(1, kFrames);
  options.sim_data = "backed";
  Build(options);
  struct Call {
    SimDevice* device;
    DevicePtr ptr;
    std::uint64_t seen;
  } call{&device(), 0, 0};
  const Stream stream = NewStream();
  Begin(stream);
  call.ptr = Take(3, stream);
  Touch(call.ptr + 2 * kFrameBytes, stream);
  ASSERT_EQ(device().LaunchHostFunc(
                stream,
                [](void* argument) {
                  auto* c = static_cast<Call*>(argument);
                  const auto* view = static_cast<const char*>(
                      c->device->HostView(c->ptr, 3 * kFrameBytes));
                  if (view == nullptr) return;
                  std::memcpy(&c->seen, view + 2 * kFrameBytes, 8);
                },
                &call),
            Status::kSuccess);
  Give(call.ptr, stream);
  Launch(Instantiate(End(stream)), stream);
  Sync(stream);
  EXPECT_EQ(call.seen, 7u);
  EXPECT_EQ(device().HostView(call.ptr, 8), nullptr);
}

}  // namespace
}  // namespace strata::sim
