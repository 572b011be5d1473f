// Chains whose stream ends while some of their blocks wait.

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "strata/facade/graphs/capture_guard.h"
#include "strata/tests/facade/facade_fixture.h"
#include "strata/tests/facade/graphs/graph_fixture.h"

namespace strata {
namespace {

class ChainEndTest : public GraphFixture {
 protected:
  explicit ChainEndTest(const PlatformOptions& options = Lazy())
      : GraphFixture(options) {}

  static PlatformOptions Lazy() {
    PlatformOptions options;
    options.sim_progress = "lazy";
    return options;
  }
  void End(const Stream& stream) {
    facade().StreamDestroyed(stream);
    Destroy(stream);
  }
};

// A block that a graph may use names another stream, which ends too.
TEST_F(ChainEndTest, AStreamThatAKeptBlockNamesIsNotUsedLater) {
  Build("allocator_strategy=cuda_malloc_async");
  const Stream owner = NewStream();
  const Stream marked = NewStream();
  const Stream captured = NewStream();
  AllocationPtr block = Alloc(Mebibytes(1), owner);
  Use(block, marked);
  facade().RecordStream(block, marked);
  facade().Wrap(captured.handle, 0);
  CaptureGuard guard(facade(), captured);
  Use(block, captured);
  facade().RecordStream(block, captured);
  Finish(guard);
  block.reset();
  End(owner);
  End(marked);
  const CallLog log(device());
  DropGraphs();
  facade().EmptyCache();
  EXPECT_EQ(log.On(marked), 0U);
  EXPECT_EQ(log.Failed(), 0U);
}

TEST_F(ChainEndTest, WithoutStatNothingStaysInUse) {
  for (const char* strategy : {"auto_growth", "bfc", "cuda_malloc_async"}) {
    SCOPED_TRACE(strategy);
    Build(std::string("strata_stat=false,allocator_strategy=") + strategy);
    const Stream marked = NewStream();
    for (int i = 0; i < 3; ++i) {
      const Stream owner = NewStream();
      AllocationPtr block = Alloc(Mebibytes(1), owner);
      Use(block, marked);
      facade().RecordStream(block, marked);
      block.reset();
      End(owner);
      ASSERT_EQ(device().Synchronize(), Status::kSuccess);
      facade().EmptyCache();
    }
    const Stats stats = facade().GetStats(Here());
    EXPECT_EQ(stats.in_use_bytes, 0U);
    EXPECT_EQ(stats.live_allocations(), 0U);
    facade_.reset();
  }
}

class ChainEndHazardsTest : public ChainEndTest {
 protected:
  ChainEndHazardsTest()
      : ChainEndTest([] {
          PlatformOptions options;
          options.sim_data = "backed";
          options.sim_check_hazards = "report";
          return options;
        }()) {}
};

// All operations on a stream precede its last event.
TEST_F(ChainEndHazardsTest, AStreamEndsOnceAllItsChainsKnow) {
  Build("allocator_strategy=cuda_malloc_async,strata_guard");
  const Stream stream = NewStream();
  for (const Place place : {kPlace, ManagedPlace(0)}) {
    AllocationPtr block = facade().Alloc(place, 20'000, stream);
    Use(block, stream);
  }
  const CallLog log(device());
  End(stream);
  std::uint64_t last_event = 0;
  std::uint64_t last_other = 0;
  std::uint64_t number = 0;
  for (const CallRecord& call : log.calls()) {
    ++number;
    if (call.stream_uid != stream.uid ||
        call.call == DeviceCall::kStreamDestroy) {
      continue;
    }
    (call.call == DeviceCall::kEventRecord ? last_event : last_other) = number;
  }
  EXPECT_GT(last_event, last_other);
  EXPECT_EQ(platform_->hazard_count().value(), 0U);
}

using MarkedFreesTest = FacadeFixture;

// A strategy with much free memory rarely misses, and only a miss checks for
// completed work.
TEST_F(MarkedFreesTest, AreFreedWithoutAMiss) {
  for (const char* strategy : {"naive_best_fit", "thread_local"}) {
    SCOPED_TRACE(strategy);
    Build(std::string("allocator_strategy=") + strategy);
    const Stream owner = NewStream();
    const Stream marked = NewStream();
    std::set<void*> addresses;
    for (int i = 0; i < 1000; ++i) {
      AllocationPtr block = facade().Alloc(kPlace, 4096, owner);
      addresses.insert(block->data());
      facade().RecordStream(block, marked);
    }
    EXPECT_LE(addresses.size(), 200U);
    facade_.reset();
  }
}

}  // namespace
}  // namespace strata
