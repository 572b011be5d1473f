// Idle memory of a stream that captures. Its work cannot be waited for, so no
// shared strategy may release the memory to the driver to make room for other
// streams.

#include <gtest/gtest.h>

#include <vector>

#include "strata/allocation/error.h"
#include "strata/tests/facade/graphs/graph_fixture.h"

namespace strata {
namespace {

class GraphIdleTest : public GraphFixture {
 protected:
  explicit GraphIdleTest(const char* progress = "lazy")
      : GraphFixture([&] {
          PlatformOptions options;
          options.sim_progress = progress;
          return options;
        }()) {}

  std::uint64_t Frees() { return device().CallCount(DeviceCall::kMemFree); }
};

TEST_F(GraphIdleTest, BfcCollectsNoRegionOfIt) {
  Build("allocator_strategy=bfc,gpu_memory_limit_mb=40,bfc_allow_growth=true");
  const Stream capturing = NewStream();
  const Stream other = NewStream();
  AllocationPtr block = Alloc(Mebibytes(20), capturing);
  Use(block, capturing);
  block.reset();
  const std::uint64_t frees = Frees();
  {
    CaptureGuard guard(facade(), capturing);
    EXPECT_THROW(Alloc(Mebibytes(38), other), BadAlloc);
    EXPECT_EQ(Frees(), frees);
    Finish(guard);
  }
  // R33, once a wait for it is possible.
  EXPECT_NE(Alloc(Mebibytes(38), other), nullptr);
  EXPECT_GT(Frees(), frees);
  DropGraphs();
}

// The facade detects the unannounced end of a capture while its stream can
// still be queried. Otherwise every later call would walk the layers, and no
// memory would be released.
TEST_F(GraphIdleTest, AStreamMayGoWithoutAWordOfItsCapture) {
  Build();
  const Stream stream = NewStream();
  const Stream other = NewStream();
  const GraphPoolId id = facade().PrepareMemoryPoolForCUDAGraph(0, stream);
  EXPECT_EQ(device().StreamBeginCapture(stream, CaptureMode::kThreadLocal),
            Status::kSuccess);
  Alloc(Mebibytes(1), stream).reset();
  Graph graph;
  EXPECT_EQ(device().StreamEndCapture(stream, &graph), Status::kSuccess);
  facade().StreamDestroyed(stream);
  Destroy(stream);
  Alloc(Mebibytes(2), other).reset();
  EXPECT_GT(facade().Release(Here()), 0U);
  EXPECT_EQ(device().GraphDestroy(graph), Status::kSuccess);
  facade().RemoveMemoryPoolOfCUDAGraph(id);
}

// The other stream's work completes at once, so its frees reach the pool.
class GraphIdleInlineTest : public GraphIdleTest {
 protected:
  GraphIdleInlineTest() : GraphIdleTest("inline") {}
};

// The memory waits for the end of the capture. Other streams may get it before.
TEST_F(GraphIdleInlineTest, AStreamThatGoesMeanwhileGivesNothingToTheDriver) {
  Build("allocator_strategy=auto_growth");
  const Stream capturing = NewStream();
  const Stream ending = NewStream();
  const Stream other = NewStream();
  Alloc(Mebibytes(20), ending).reset();
  const std::uint64_t frees = Frees();
  const std::size_t reserved = facade().GetStats(Here()).reserved_bytes;
  {
    CaptureGuard guard(facade(), capturing);
    facade().StreamDestroyed(ending);
    EXPECT_EQ(Frees(), frees);
    const AllocationPtr taken = Alloc(Mebibytes(20), other);
    EXPECT_EQ(facade().GetStats(Here()).reserved_bytes, reserved);
    Finish(guard);
  }
  Destroy(ending);
  EXPECT_GT(facade().Release(Here()), 0U);
  EXPECT_GT(Frees(), frees);
  DropGraphs();
}

TEST_F(GraphIdleInlineTest, PoolEvictsNothingOfIt) {
  Build(
      "allocator_strategy=pool,pool_size_limit=2,pool_auto_resize=false,"
      "strata_cross_stream_wait=true");
  const Stream capturing = NewStream();
  const Stream other = NewStream();
  AllocationPtr block = Alloc(Mebibytes(1), capturing);
  Use(block, capturing);
  block.reset();
  const auto fill = [&] {
    std::vector<AllocationPtr> blocks;
    for (std::size_t i = 0; i < 4; ++i) {
      blocks.push_back(Alloc(Mebibytes(2) + i * 4096, other));
    }
  };
  const std::uint64_t frees = Frees();
  CaptureGuard guard(facade(), capturing);
  fill();
  // The next miss moves the deferred blocks to the pool.
  Alloc(Mebibytes(3), other).reset();
  EXPECT_EQ(Frees(), frees);
  Finish(guard);
  fill();
  EXPECT_GT(Frees(), frees);
  DropGraphs();
}

// The third stream finds a block that it would have to wait for. It returns the
// block to a pool that is already above its limit.
TEST_F(GraphIdleInlineTest, PoolKeepsWhatAnotherStreamMayNotHaveYet) {
  Build(
      "allocator_strategy=pool,pool_size_limit=2,pool_auto_resize=false,"
      "strata_cross_stream_wait=true");
  const Stream capturing = NewStream();
  const Stream last = NewStream();
  const Stream other = NewStream();
  AllocationPtr live = Alloc(Kibibytes(512), last);
  Alloc(Mebibytes(1), capturing).reset();
  {
    CaptureGuard guard(facade(), capturing);
    {
      std::vector<AllocationPtr> blocks;
      for (std::size_t i = 0; i < 4; ++i) {
        blocks.push_back(Alloc(Mebibytes(2) + i * 4096, other));
      }
    }
    Alloc(Mebibytes(3), other).reset();
    Finish(guard);
  }
  Alloc(Mebibytes(2) + 4096, last).reset();
  live.reset();
  DropGraphs();
  Release();
  EXPECT_EQ(Reserved(), 0U);
}

}  // namespace
}  // namespace strata
