// Idle memory beside a live block of a graph pool without graphs, or of a chain
// without a stream. A release and the ladder reach it, with every strategy.

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <utility>

#include "strata/allocation/error.h"
#include "strata/tests/facade/graphs/graph_fixture.h"

namespace strata {
namespace {

constexpr std::size_t kChunk =
    Mebibytes(12);  // large enough for a separate chunk
// Limit, of 64 MiB: leaves room beside one live chunk, but not beside two.
constexpr std::size_t kMost = Mebibytes(42);

class EndedPoolsFixture : public GraphFixture {
 protected:
  explicit EndedPoolsFixture(const char* progress = "inline")
      : GraphFixture([&] {
          PlatformOptions options;
          options.sim_progress = progress;
          return options;
        }()) {}

  void BuildStrategy(const std::string& name) {
    Build("allocator_strategy=" + name +
          ",gpu_allocator_retry_time=0,bfc_allow_growth=true");
  }
  // Captures two temporaries and a result. The result stays live.
  AllocationPtr CaptureResult(CaptureGuard& guard) {
    const AllocationPtr first = Alloc(kChunk, stream_);
    const AllocationPtr second = Alloc(kChunk, stream_);
    AllocationPtr result = Alloc(kChunk, stream_);
    Use(result, stream_);
    exec_ = Finish(guard);
    return result;
  }
  AllocationPtr CaptureResult() {
    CaptureGuard guard(facade(), stream_);
    return CaptureResult(guard);
  }
  AllocationPtr TryAlloc(std::size_t bytes) {
    Failure failure;
    return facade().TryAlloc(Here(), Request{bytes}, other_, failure);
  }

  const Stream stream_ = NewStream();
  const Stream other_ = NewStream();
  GraphExec exec_;
};

class EndedPoolsTest : public EndedPoolsFixture,
                       public testing::WithParamInterface<const char*> {
 protected:
  EndedPoolsTest() { BuildStrategy(GetParam()); }
};

TEST_P(EndedPoolsTest, ALiveResultKeepsNothingButItsChunk) {
  const AllocationPtr result = CaptureResult();
  EXPECT_GE(Reserved(), 3 * kChunk);
  DropGraphs();
  facade().EmptyCache();
  EXPECT_EQ(Reserved(), kChunk);
}

TEST_P(EndedPoolsTest, TheLadderReachesWhatIsIdleBesideALiveResult) {
  const AllocationPtr result = CaptureResult();
  EXPECT_EQ(TryAlloc(kMost), nullptr);
  DropGraphs();
  EXPECT_NE(TryAlloc(kMost), nullptr);
}

// The pool ended before, and all its blocks but one are freed later.
TEST_P(EndedPoolsTest, ReleaseGivesWhatIsFreedAfterTheEnd) {
  AllocationPtr second;
  AllocationPtr result;
  {
    CaptureGuard guard(facade(), stream_);
    second = Alloc(kChunk, stream_);
    result = Alloc(kChunk, stream_);
    Finish(guard);
  }
  DropGraphs();
  Sweep();
  second.reset();
  EXPECT_EQ(Reserved(), 2 * kChunk);
  EXPECT_EQ(facade().Release(Here()), kChunk);
  EXPECT_EQ(Reserved(), kChunk);
}

TEST_P(EndedPoolsTest, TheLadderReachesWhatIsFreedAfterTheEnd) {
  AllocationPtr second;
  AllocationPtr result;
  {
    CaptureGuard guard(facade(), stream_);
    second = Alloc(kChunk, stream_);
    result = Alloc(kChunk, stream_);
    Finish(guard);
  }
  DropGraphs();
  Sweep();
  EXPECT_EQ(TryAlloc(kMost), nullptr);
  second.reset();
  EXPECT_NE(TryAlloc(kMost), nullptr);
}

TEST_P(EndedPoolsTest, AFailedCaptureKeepsNothingButTheChunkOfALiveBlock) {
  AllocationPtr result;
  {
    CaptureGuard guard(facade(), stream_);
    const AllocationPtr temporary = Alloc(kChunk, stream_);
    result = Alloc(kChunk, stream_);
    // Forbidden: the capture fails.
    EXPECT_NE(device().StreamSynchronize(stream_), Status::kSuccess);
    EXPECT_ANY_THROW(guard.End());
  }
  EXPECT_NE(TryAlloc(kMost), nullptr);
  facade().EmptyCache();
  EXPECT_EQ(Reserved(), kChunk);
}

TEST_P(EndedPoolsTest, NothingIsLeftOnceTheLastBlockIsFreed) {
  AllocationPtr result = CaptureResult();
  DropGraphs();
  facade().EmptyCache();
  result.reset();
  facade().EmptyCache();
  EXPECT_EQ(Reserved(), 0U);
}

// The device reports the end of a graph at its next call. A release makes such
// a call.
TEST_P(EndedPoolsTest, EmptyCacheRightAfterTheLastGraphGivesItsPool) {
  Graph graph;
  {
    CaptureGuard guard(facade(), stream_);
    Alloc(kChunk, stream_).reset();
    graph = guard.End();
  }
  EXPECT_EQ(device().GraphDestroy(graph), Status::kSuccess);
  EXPECT_EQ(facade().EmptyCache(), kChunk);
  EXPECT_EQ(Reserved(), 0U);
}

// A stream that ended with live blocks in separate chunks.
class EndedChainsTest : public EndedPoolsTest {};

TEST_P(EndedChainsTest, TheLadderReachesAChainOfAnEndedStream) {
  const Stream ending = NewStream();
  AllocationPtr first = Alloc(kChunk, ending);
  const AllocationPtr live = Alloc(kChunk, ending);
  facade().StreamDestroyed(ending);
  Destroy(ending);
  first.reset();
  EXPECT_NE(TryAlloc(kMost), nullptr);
}

TEST_P(EndedChainsTest, ReleaseReachesAChainOfAnEndedStream) {
  const Stream ending = NewStream();
  AllocationPtr first = Alloc(kChunk, ending);
  const AllocationPtr live = Alloc(kChunk, ending);
  const std::size_t before = Reserved();
  facade().StreamDestroyed(ending);
  Destroy(ending);
  first.reset();
  facade().Release(Here());
  EXPECT_LE(Reserved(), before - kChunk);
}

class EndedPoolsAtWorkTest : public EndedPoolsFixture,
                             public testing::WithParamInterface<const char*> {
 protected:
  EndedPoolsAtWorkTest() : EndedPoolsFixture("manual") {
    BuildStrategy(GetParam());
  }
};

// The launch runs when the test requests it.
TEST_P(EndedPoolsAtWorkTest, NothingGoesBeforeTheLaunchesInFlightAreOver) {
  const AllocationPtr result = CaptureResult();
  Launch(exec_, other_);
  DropGraphs();
  // No Release(): it may wait for the work of the stream.
  Sweep();
  EXPECT_EQ(Reserved(), 3 * kChunk);
  EXPECT_EQ(Count(DeviceCall::kMemFree), 0U);
  device().StepAll();
  EXPECT_EQ(Reserved(), 3 * kChunk);
  facade().EmptyCache();
  EXPECT_EQ(Reserved(), kChunk);
}

TEST_P(EndedPoolsAtWorkTest, TheLadderWaitsForTheLaunchesInFlight) {
  const AllocationPtr result = CaptureResult();
  Launch(exec_, other_);
  DropGraphs();
  CallLog log(device());
  const AllocationPtr most = TryAlloc(kMost);
  EXPECT_NE(most, nullptr);
  bool has_waited = false;
  for (const CallRecord& call : log.calls()) {
    has_waited |= call.call == DeviceCall::kSynchronize;
    if (call.call == DeviceCall::kMemFree) {
      EXPECT_TRUE(has_waited);
    }
  }
  EXPECT_GE(log.Of(DeviceCall::kMemFree).size(), 2U);
}

#define STRATA_ALL_STRATEGIES(Test)                                        \
  INSTANTIATE_TEST_SUITE_P(                                                \
      Strategies, Test,                                                    \
      testing::Values("auto_growth", "bfc", "cuda_malloc_async", "direct", \
                      "naive_best_fit", "pool", "thread_local"),           \
      [](const auto& test) { return std::string(test.param); })
STRATA_ALL_STRATEGIES(EndedPoolsTest);
INSTANTIATE_TEST_SUITE_P(Strategies, EndedChainsTest,
                         testing::Values("auto_growth", "bfc", "direct",
                                         "pool"),
                         [](const auto& test) {
                           return std::string(test.param);
                         });
STRATA_ALL_STRATEGIES(EndedPoolsAtWorkTest);
#undef STRATA_ALL_STRATEGIES

}  // namespace
}  // namespace strata
