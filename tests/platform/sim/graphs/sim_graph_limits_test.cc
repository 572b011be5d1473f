// Memory nodes of graphs on the simulated device: refusals of captures and
// launches, and the complete release of addresses.

#include <gtest/gtest.h>

#include <cstdint>

#include "strata/tests/platform/sim/streams/sim_progress_fixture.h"

namespace strata::sim {
namespace {

class SimGraphLimitsTest : public SimProgressFixture {
 protected:
  static constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

  // A device with graph addresses for few chunks of half its memory.
  void BuildLarge() {
    PlatformOptions options = SimOptions(1, kFrames);
    options.sim_memory_bytes = 80 * kGiB;
    Build(options);
  }
  Status Take(std::uint64_t bytes, const Stream& stream, DevicePtr* ptr) {
    MemPool pool;
    EXPECT_EQ(device().DefaultMemPool(&pool), Status::kSuccess);
    return device().MallocFromPoolAsync(ptr, bytes, pool, stream);
  }
  // Ends a capture that allocated 40 GiB; there is no graph.
  void FailAfterTaking(const Stream& stream) {
    DevicePtr ptr = 0;
    ASSERT_EQ(Take(40 * kGiB, stream, &ptr), Status::kSuccess);
    ASSERT_EQ(device().StreamQuery(stream), Status::kStreamCaptureUnsupported);
    Graph graph;
    ASSERT_EQ(device().StreamEndCapture(stream, &graph),
              Status::kStreamCaptureInvalidated);
  }
  // Launches a graph that allocates, destroys its exec, and adds a node that
  // frees. Returns the live memory.
  DevicePtr LeaveLive(const Stream& stream) {
    EXPECT_EQ(device().StreamBeginCapture(stream, CaptureMode::kRelaxed),
              Status::kSuccess);
    DevicePtr ptr = 0;
    EXPECT_EQ(Take(kFrameBytes, stream, &ptr), Status::kSuccess);
    CaptureInfo info;
    EXPECT_EQ(device().StreamCaptureInfo(stream, &info), Status::kSuccess);
    EXPECT_EQ(device().StreamEndCapture(stream, &graph_), Status::kSuccess);
    GraphExec exec;
    EXPECT_EQ(device().GraphInstantiate(&exec, graph_, 0), Status::kSuccess);
    EXPECT_EQ(device().GraphLaunch(exec, stream), Status::kSuccess);
    EXPECT_EQ(device().GraphExecDestroy(exec), Status::kSuccess);
    EXPECT_EQ(
        device().StreamBeginCaptureToGraph(
            stream, graph_, info.dependencies.data(), 1, CaptureMode::kRelaxed),
        Status::kSuccess);
    EXPECT_EQ(device().FreeAsync(ptr, stream), Status::kSuccess);
    EXPECT_EQ(device().StreamEndCapture(stream, &graph_), Status::kSuccess);
    return ptr;
  }

  Graph graph_;
};

// cuda_semantics P3. Sizes near 2^64 would round to 0.
TEST_F(SimGraphLimitsTest, SizesThatNoDeviceHasAreRefusedAtTheCapture) {
  Build("lazy");
  const Stream stream = NewStream();
  ASSERT_EQ(device().StreamBeginCapture(stream, CaptureMode::kRelaxed),
            Status::kSuccess);
  for (const std::uint64_t bytes :
       {UINT64_MAX, UINT64_MAX - kFrameBytes + 2, UINT64_MAX - kFrameBytes,
        std::uint64_t{1} << 63, kFrames * kFrameBytes + 1}) {
    DevicePtr ptr = 77;
    EXPECT_EQ(Take(bytes, stream, &ptr), Status::kMemoryAllocation) << bytes;
    EXPECT_EQ(ptr, 77u);
  }
  DevicePtr ptr = 0;
  EXPECT_EQ(Take(kFrames * kFrameBytes, stream, &ptr), Status::kSuccess);
  Graph graph;
  EXPECT_EQ(device().StreamEndCapture(stream, &graph), Status::kSuccess);
}

// cuda_semantics C33: a failed capture releases its memory.
TEST_F(SimGraphLimitsTest, FailedCapturesDoNotUseUpTheAddresses) {
  BuildLarge();
  const Stream stream = NewStream();
  for (int i = 0; i < 60; ++i) {
    SCOPED_TRACE(i);
    ASSERT_EQ(device().StreamBeginCapture(stream, CaptureMode::kRelaxed),
              Status::kSuccess);
    ASSERT_NO_FATAL_FAILURE(FailAfterTaking(stream));
  }
}

// Likewise for captures into a graph that stays.
TEST_F(SimGraphLimitsTest, CapturesUndoneGiveTheirAddressesBack) {
  BuildLarge();
  const Stream stream = NewStream();
  ASSERT_EQ(device().StreamBeginCapture(stream, CaptureMode::kRelaxed),
            Status::kSuccess);
  DevicePtr kept = 0;
  ASSERT_EQ(Take(kFrameBytes, stream, &kept), Status::kSuccess);
  Graph graph;
  ASSERT_EQ(device().StreamEndCapture(stream, &graph), Status::kSuccess);
  for (int i = 0; i < 60; ++i) {
    SCOPED_TRACE(i);
    ASSERT_EQ(device().StreamBeginCaptureToGraph(stream, graph, nullptr, 0,
                                                 CaptureMode::kRelaxed),
              Status::kSuccess);
    ASSERT_NO_FATAL_FAILURE(FailAfterTaking(stream));
  }
  GraphExec exec;
  ASSERT_EQ(device().GraphInstantiate(&exec, graph, 0), Status::kSuccess);
  EXPECT_EQ(device().GraphLaunch(exec, stream), Status::kSuccess);
  EXPECT_EQ(device().FreeAsync(kept, stream), Status::kSuccess);
}

// cuda_semantics P14, {in G, by a stream}: memory that an earlier exec
// allocated still counts, although later nodes free it.
TEST_F(SimGraphLimitsTest, LaunchIsRefusedWhileWhatTheGraphAllocatedIsLive) {
  Build("lazy");
  const Stream stream = NewStream();
  const DevicePtr ptr = LeaveLive(stream);
  GraphExec exec;
  ASSERT_EQ(device().GraphInstantiate(&exec, graph_, 0), Status::kSuccess);
  EXPECT_EQ(device().GraphLaunch(exec, stream), Status::kInvalidValue);
  EXPECT_EQ(device().Leaks().graph_allocations, 1u);
  ASSERT_EQ(device().FreeAsync(ptr, stream), Status::kSuccess);
  EXPECT_EQ(device().GraphLaunch(exec, stream), Status::kSuccess);
  EXPECT_EQ(device().Leaks().graph_allocations, 0u);
}

TEST_F(SimGraphLimitsTest, AutoFreeFreesWhatEarlierInstancesHaveLeft) {
  Build("lazy");
  const Stream stream = NewStream();
  const DevicePtr ptr = LeaveLive(stream);
  GraphExec exec;
  ASSERT_EQ(device().GraphInstantiate(&exec, graph_, kGraphAutoFreeOnLaunch),
            Status::kSuccess);
  EXPECT_EQ(device().GraphLaunch(exec, stream), Status::kSuccess);
  EXPECT_EQ(device().Leaks().graph_allocations, 0u);
  EXPECT_EQ(device().FreeAsync(ptr, stream), Status::kInvalidValue);
  EXPECT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
}

}  // namespace
}  // namespace strata::sim
