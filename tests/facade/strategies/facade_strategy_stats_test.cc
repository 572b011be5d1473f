// Statistics of strategies through the facade: the memory that they hold and
// release, summed over all streams, ended streams included.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "strata/facade/allocator_facade.h"
#include "strata/tests/facade/facade_fixture.h"

namespace strata {
namespace {

class StrategyStatsTest : public FacadeFixture,
                          public ::testing::WithParamInterface<const char*> {
 protected:
  void BuildWith(const std::string& more = "") {
    Build("allocator_strategy=" + std::string(GetParam()) + more);
  }
  Stats Now() { return facade().GetStats(kPlace); }
};

TEST_P(StrategyStatsTest, WhatIsFreeIsInTheSum) {
  BuildWith();
  const std::vector<Stream> streams = {NewStream(), NewStream()};
  for (const Stream& stream : streams) {
    for (int i = 0; i < 10; ++i) facade().Alloc(kPlace, 5000, stream).reset();
  }
  ASSERT_EQ(device().Synchronize(), Status::kSuccess);
  // Must search the deferred blocks of the streams.
  facade().Alloc(kPlace, 70000, streams[0]).reset();
  const Stats stats = Now();
  EXPECT_GE(stats.cache_hits, 9U);
  EXPECT_GE(stats.cache_misses, 1U);
  EXPECT_GE(stats.free_blocks, 1U);
  EXPECT_GE(stats.largest_free_bytes, 5000U);
  // A deferred block is live to a strategy that streams share.
  if (GetParam() == std::string("auto_growth")) {
    EXPECT_GT(stats.idle_bytes, 0U);
  }
  EXPECT_LE(stats.idle_bytes, stats.reserved_bytes);
}

TEST_P(StrategyStatsTest, WhatEndedStreamsHadFoundStaysInTheSum) {
  BuildWith();
  const Stream stream = NewStream();
  for (int i = 0; i < 10; ++i) facade().Alloc(kPlace, 5000, stream).reset();
  const Stats before = Now();
  facade().StreamDestroyed(stream);
  Destroy(stream);
  facade().Release(kPlace);
  const Stats after = Now();
  EXPECT_EQ(after.cache_hits, before.cache_hits);
  EXPECT_EQ(after.cache_misses, before.cache_misses);
  EXPECT_GE(after.splits, before.splits);
  EXPECT_EQ(after.free_blocks, 0U);
  EXPECT_EQ(after.idle_bytes, 0U);
}

// Exact, also if the device fails to free some of it.
TEST_P(StrategyStatsTest, ReleaseSaysWhatTheSystemGot) {
  for (const char* fault : {"mem_free:every=2", "mem_free:nth=2"}) {
    BuildWith(
        ",reallocate_gpu_memory_in_mb=8,initial_gpu_memory_in_mb=8,"
        "gpu_memory_limit_mb=48,gpu_allocator_retry_time=0");
    device().ClearFaults();
    device().AddFault(sim::ParseFaultRules(fault).front());
    for (int round = 0; round < 4; ++round) {
      std::vector<AllocationPtr> live;
      for (const std::size_t bytes :
           {Mebibytes(10), Mebibytes(2), Mebibytes(1), Mebibytes(5)}) {
        Failure failure;
        live.push_back(facade().GetAllocator(kPlace).AllocateOrNull(
            Request{bytes}, failure));
      }
      live.clear();
      const std::size_t before = Now().reserved_bytes;
      const std::size_t given = facade().Release(kPlace);
      EXPECT_EQ(given, before - Now().reserved_bytes) << fault << ' ' << round;
    }
  }
  device().ClearFaults();
}

INSTANTIATE_TEST_SUITE_P(Strategies, StrategyStatsTest,
                         ::testing::Values("auto_growth", "bfc",
                                           "naive_best_fit", "thread_local",
                                           "pool"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace strata
