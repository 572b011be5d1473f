#ifndef STRATA_TESTS_PLATFORM_SIM_GRAPHS_SIM_GRAPH_MEMORY_FIXTURE_H_
#define STRATA_TESTS_PLATFORM_SIM_GRAPHS_SIM_GRAPH_MEMORY_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "strata/platform/sim/bytes/frame_store.h"
#include "strata/tests/platform/sim/streams/sim_progress_fixture.h"

namespace strata::sim {

// Captures that allocate memory, on a simulated device that runs work on
// request.
class SimGraphMemoryTest : public SimProgressFixture {
 protected:
  void SetUp() override { Build("lazy"); }

  void Begin(const Stream& stream) {
    ASSERT_EQ(device().StreamBeginCapture(stream, CaptureMode::kRelaxed),
              Status::kSuccess);
  }
  Graph End(const Stream& stream, Status expected = Status::kSuccess) {
    Graph graph;
    EXPECT_EQ(device().StreamEndCapture(stream, &graph), expected);
    return graph;
  }
  DevicePtr Take(std::uint64_t frames, const Stream& stream) {
    return TakeBytes(frames * kFrameBytes, stream);
  }
  DevicePtr TakeBytes(std::uint64_t bytes, const Stream& stream) {
    MemPool pool;
    EXPECT_EQ(device(stream.device).DefaultMemPool(&pool), Status::kSuccess);
    DevicePtr ptr = 0;
    EXPECT_EQ(
        device(stream.device).MallocFromPoolAsync(&ptr, bytes, pool, stream),
        Status::kSuccess);
    return ptr;
  }
  void Give(DevicePtr ptr, const Stream& stream) {
    EXPECT_EQ(device().FreeAsync(ptr, stream), Status::kSuccess);
  }
  // Allocates and frees, with work in between.
  GraphExec Closed(std::uint64_t frames, DevicePtr* ptr = nullptr) {
    const Stream stream = NewStream();
    Begin(stream);
    const DevicePtr taken = Take(frames, stream);
    if (ptr != nullptr) *ptr = taken;
    Touch(taken, stream);
    Give(taken, stream);
    return Instantiate(End(stream));
  }
  GraphExec Escaping(std::uint64_t frames, DevicePtr* ptr, unsigned flags = 0) {
    const Stream stream = NewStream();
    Begin(stream);
    *ptr = Take(frames, stream);
    Touch(*ptr, stream);
    return Instantiate(End(stream), flags);
  }
  GraphExec Instantiate(Graph graph, unsigned flags = 0) {
    GraphExec exec;
    EXPECT_EQ(device().GraphInstantiate(&exec, graph, flags), Status::kSuccess);
    graph_ = graph;
    return exec;
  }
  void Touch(DevicePtr ptr, const Stream& stream) {
    const WorkRange range{ptr, 512, true};
    EXPECT_EQ(platform_->work(0)->Enqueue(stream, &range, 1, 1000, 7),
              Status::kSuccess);
  }
  void Launch(GraphExec exec, const Stream& stream) {
    ASSERT_EQ(device().GraphLaunch(exec, stream), Status::kSuccess);
  }
  void Sync(const Stream& stream) {
    ASSERT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
  }
  std::uint64_t Frames(GraphMemAttributeKind kind) {
    std::uint64_t bytes = 77;
    EXPECT_EQ(device().GraphMemAttribute(kind, &bytes), Status::kSuccess);
    EXPECT_EQ(bytes % kFrameBytes, 0u);
    return bytes / kFrameBytes;
  }
  std::uint64_t FreeFrames() {
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    EXPECT_EQ(device().MemGetInfo(&free_bytes, &total_bytes), Status::kSuccess);
    return free_bytes / kFrameBytes;
  }

  Graph graph_;  // the last instantiated graph
};

}  // namespace strata::sim

#endif  // STRATA_TESTS_PLATFORM_SIM_GRAPHS_SIM_GRAPH_MEMORY_FIXTURE_H_
