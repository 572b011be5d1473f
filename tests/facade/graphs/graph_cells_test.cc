// The four cells of {allocated, freed} x {inside, outside a capture}, for every
// strategy (paddle.md §3.7-5, DESIGN §5). With cuda_malloc_async, one of them
// was reversed (paddle.md §5 B2).

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "strata/allocation/error.h"
#include "strata/strategy/registry.h"
#include "strata/tests/facade/graphs/graph_fixture.h"

namespace strata {
namespace {

constexpr std::size_t kCellBytes = std::size_t{256} << 10;

class GraphCellsTest : public GraphFixture,
                       public testing::WithParamInterface<std::string> {
 protected:
  GraphCellsTest() : stream_(NewStream()) {
    std::string options = "allocator_strategy=";
    options.append(GetParam());
    Build(options);
  }

  // True if one of the eager requests, as many as fit, gets memory at `data`.
  bool EagerGets(const void* data) { return EagerGets(data, stream_); }
  bool EagerGets(const void* data, const Stream& stream) {
    std::vector<AllocationPtr> held;
    Failure failure;
    for (;;) {
      AllocationPtr more =
          facade().TryAlloc(Here(), Request{kCellBytes}, stream, failure);
      if (more == nullptr) break;
      held.push_back(std::move(more));
    }
    EXPECT_FALSE(held.empty());
    const auto* wanted = static_cast<const char*>(data);
    bool found = false;
    for (const AllocationPtr& allocation : held) {
      const auto* begin = static_cast<const char*>(allocation->data());
      found = found || (begin < wanted + kCellBytes &&
                        wanted < begin + allocation->size());
    }
    return found;
  }

  // Without a pool, the system returns other addresses.
  static bool UsesAgain() { return GetParam() != "direct"; }

  const Stream stream_;
};

TEST_P(GraphCellsTest, AllocatedInsideFreedInside) {
  CaptureGuard guard(facade(), stream_);
  AllocationPtr first = Alloc(kCellBytes, stream_);
  Use(first, stream_);
  const void* const data = first->data();
  first.reset();
  // Its own capture reuses it at once.
  AllocationPtr second = Alloc(kCellBytes, stream_);
  EXPECT_EQ(second->data(), data);
  Use(second, stream_);
  second.reset();
  const GraphExec exec = Finish(guard);
  Launch(exec, stream_);
  EXPECT_FALSE(EagerGets(data));
  Launch(exec, stream_);
  DropGraphs();
  Release();
  EXPECT_EQ(Reserved(), 0u);
}

TEST_P(GraphCellsTest, AllocatedInsideFreedOutside) {
  const GraphPoolId pool = 7;
  facade().PrepareMemoryPoolForCUDAGraph(pool, stream_);
  facade().CaptureEnded(pool);
  AllocationPtr inside;
  {
    CaptureGuard guard(facade(), stream_, pool);
    inside = Alloc(kCellBytes, stream_);
    Use(inside, stream_);
    Launch(Finish(guard), stream_);
  }
  const void* const data = inside->data();
  inside.reset();
  EXPECT_FALSE(EagerGets(data)) << "the graph still writes there";
  {
    // The next capture of the pool may use it.
    CaptureGuard guard(facade(), stream_, pool);
    EXPECT_EQ(Alloc(kCellBytes, stream_)->data(), data);
    Finish(guard);
  }
  DropGraphs();
  facade().RemoveMemoryPoolOfCUDAGraph(pool);
  Release();
  EXPECT_EQ(Reserved(), 0u);
}

TEST_P(GraphCellsTest, AllocatedInsideOutlivesItsGraph) {
  AllocationPtr inside;
  {
    CaptureGuard guard(facade(), stream_);
    inside = Alloc(kCellBytes, stream_);
    Use(inside, stream_);
    Launch(Finish(guard), stream_);
  }
  DropGraphs();
  Sweep();
  EXPECT_FALSE(EagerGets(inside->data())) << "it is allocated";
  Use(inside, stream_);
  inside.reset();
  Release();
  EXPECT_EQ(Reserved(), 0u);
}

TEST_P(GraphCellsTest, AllocatedOutsideFreedInside) {
  AllocationPtr outside = Alloc(kCellBytes, stream_);
  const void* const data = outside->data();
  GraphExec exec;
  {
    CaptureGuard guard(facade(), stream_);
    Use(outside, stream_);
    outside.reset();
    EXPECT_NE(Alloc(kCellBytes, stream_)->data(), data);
    exec = Finish(guard);
  }
  EXPECT_FALSE(EagerGets(data)) << "the graph still writes there";
  Launch(exec, stream_);
  DropGraphs();
  Sweep();
  EXPECT_EQ(EagerGets(data), UsesAgain());
}

TEST_P(GraphCellsTest, AllocatedAndFreedOutside) {
  const void* data = nullptr;
  const Stream other = NewStream();
  {
    CaptureGuard guard(facade(), stream_);
    AllocationPtr outside = Alloc(kCellBytes, other);
    Use(outside, other);
    data = outside->data();
    outside.reset();
    Finish(guard);
  }
  EXPECT_EQ(EagerGets(data, other), UsesAgain())
      << "no graph has to do with it";
}

// cuda_semantics.md C33.
TEST_P(GraphCellsTest, AFailedCaptureGivesEverythingBack) {
  AllocationPtr outside = Alloc(kCellBytes, stream_);
  const void* const data = outside->data();
  {
    CaptureGuard guard(facade(), stream_);
    AllocationPtr inside = Alloc(kCellBytes, stream_);
    outside.reset();
    // Ends the capture.
    EXPECT_NE(device().StreamSynchronize(stream_), Status::kSuccess);
    Failure failure;
    EXPECT_EQ(facade().TryAlloc(Here(), Request{kCellBytes}, stream_, failure),
              nullptr);
    EXPECT_EQ(failure.status, Status::kStreamCaptureInvalidated);
    EXPECT_THROW(guard.End(), DeviceError);
  }
  Sweep();
  EXPECT_EQ(EagerGets(data), UsesAgain());
  Release();
  EXPECT_EQ(Reserved(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Strategies, GraphCellsTest,
                         testing::Values("auto_growth", "bfc",
                                         "cuda_malloc_async", "direct",
                                         "naive_best_fit", "thread_local"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace strata
