// The statistics of a facade.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "strata/allocation/error.h"
#include "strata/allocation/hit/place_peak.h"
#include "strata/facade/allocator_facade.h"
#include "strata/facade/graphs/capture_guard.h"
#include "strata/tests/facade/facade_fixture.h"

namespace strata {
namespace {

class FacadeStatsTest : public FacadeFixture {
 protected:
  Stats Now() { return facade().GetStats(kPlace); }
};

TEST_F(FacadeStatsTest, CountsEveryAllocationAndFree) {
  Build("allocator_strategy=auto_growth");
  const Stream stream = NewStream();
  AllocationPtr first = facade().Alloc(kPlace, 1000);
  AllocationPtr second = facade().Alloc(kPlace, Mebibytes(12), stream);
  facade().Alloc(kPlace, 300).reset();
  Stats stats = Now();
  EXPECT_EQ(stats.allocations, 3U);
  EXPECT_EQ(stats.frees, 1U);
  EXPECT_EQ(stats.failures, 0U);
  EXPECT_EQ(stats.requested_bytes, 1000 + Mebibytes(12));
  EXPECT_EQ(stats.total_requested_bytes, 1300 + Mebibytes(12));
  EXPECT_EQ(stats.in_use_bytes, 1024 + Mebibytes(12));
  EXPECT_EQ(stats.reserved_bytes, Mebibytes(14));
  EXPECT_EQ(stats.chunks, 2U);

  first.reset();
  second.reset();
  stats = Now();
  EXPECT_EQ(stats.frees, 3U);
  EXPECT_EQ(stats.requested_bytes, 0U);
  EXPECT_EQ(stats.in_use_bytes, 0U);
  EXPECT_EQ(stats.reserved_bytes, Mebibytes(14));
}

// Each chain would count a layer that streams share for all of them.
TEST_F(FacadeStatsTest, WithoutTheLayerThatCountsEachIsCountedOnce) {
  for (const std::string strategy :
       {"auto_growth", "bfc", "direct", "naive_best_fit", "thread_local",
        "pool", "cuda_malloc_async"}) {
    Build("strata_stat=false,allocator_strategy=" + strategy);
    std::vector<AllocationPtr> live;
    for (int i = 0; i < 3; ++i) {
      const Stream stream = NewStream();
      live.push_back(facade().Alloc(kPlace, 1000, stream));
      facade().Alloc(kPlace, 1000, stream).reset();
    }
    const Stats stats = Now();
    EXPECT_EQ(stats.allocations, 6U) << strategy;
    EXPECT_EQ(stats.frees, 3U) << strategy;
    EXPECT_EQ(stats.requested_bytes, 3000U) << strategy;
    live.clear();
    facade().ResetPeak(kPlace);
    EXPECT_EQ(Now().peak_in_use_bytes, 0U) << strategy;
    live.push_back(facade().Alloc(kPlace, 1000));
    EXPECT_EQ(Now().peak_in_use_bytes, Now().in_use_bytes) << strategy;
  }
}

TEST_F(FacadeStatsTest, CountsHitsAndAlignedAndMarkedBlocksAlike) {
  Build();
  const Stream other = NewStream();
  for (int i = 0; i < 10; ++i) {
    AllocationPtr plain = facade().Alloc(kPlace, 1000);
    AllocationPtr aligned =
        facade().GetAllocator(kPlace).Allocate(Request{1000, 1 << 14});
    facade().RecordStream(plain, other);
    EXPECT_EQ(Now().requested_bytes, 2000U);
  }
  EXPECT_EQ(Now().allocations, 20U);
  EXPECT_EQ(Now().frees, 20U);
  EXPECT_EQ(Now().requested_bytes, 0U);
  EXPECT_EQ(Now().in_use_bytes, 0U);
}

TEST_F(FacadeStatsTest, ReservedIsWhatTheDeviceShowsAsTaken) {
  Build();
  const AllocationPtr small = facade().Alloc(kPlace, 1);
  const AllocationPtr large =
      facade().Alloc(kPlace, Mebibytes(11), NewStream());
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  ASSERT_EQ(device().MemGetInfo(&free_bytes, &total_bytes), Status::kSuccess);
  EXPECT_EQ(Now().reserved_bytes, total_bytes - free_bytes);
}

TEST_F(FacadeStatsTest, ARefusedRequestCountsAsAFailureOnly) {
  Build();
  const AllocationPtr held = facade().Alloc(kPlace, 1000);
  const Stats before = Now();
  EXPECT_THROW(facade().Alloc(kPlace, 2 * kMemoryBytes), OutOfMemory);
  const Stats after = Now();
  EXPECT_GT(after.failures, before.failures);
  EXPECT_EQ(after.allocations, before.allocations);
  EXPECT_EQ(after.in_use_bytes, before.in_use_bytes);
  EXPECT_EQ(after.peak_in_use_bytes, before.peak_in_use_bytes);
  EXPECT_EQ(after.reserved_bytes, before.reserved_bytes);
}

TEST_F(FacadeStatsTest, NumbersOfAThreadThatEndedStay) {
  Build();
  void* const own_stream = reinterpret_cast<void*>(2);
  std::thread([&] {
    for (int i = 0; i < 5; ++i) facade().Alloc(kPlace, 100, own_stream).reset();
  }).join();
  EXPECT_EQ(Now().allocations, 5U);
  EXPECT_EQ(Now().frees, 5U);
  EXPECT_EQ(Now().total_requested_bytes, 500U);
}

TEST_F(FacadeStatsTest, NumbersOfADestroyedStreamStay) {
  Build();
  const Stream stream = NewStream();
  AllocationPtr held = facade().Alloc(kPlace, 100, stream);
  facade().Alloc(kPlace, 200, stream).reset();
  facade().StreamDestroyed(stream);
  EXPECT_EQ(Now().allocations, 2U);
  EXPECT_EQ(Now().requested_bytes, 100U);
  held.reset();
  EXPECT_EQ(Now().allocations, 2U);
  EXPECT_EQ(Now().frees, 2U);
  EXPECT_EQ(Now().requested_bytes, 0U);
}

TEST_F(FacadeStatsTest, ThePeakOfSeveralStreamsIsExact) {
  Build();
  const Stream stream = NewStream();
  facade().Alloc(kPlace, Mebibytes(12)).reset();
  facade().Alloc(kPlace, Mebibytes(14), stream).reset();
  EXPECT_EQ(facade().LargestStreamPeak(kPlace), Mebibytes(14));
  EXPECT_EQ(Now().peak_in_use_bytes, Mebibytes(14));
  EXPECT_FALSE(Now().peak_in_use_is_bound);
  const AllocationPtr both[] = {facade().Alloc(kPlace, Mebibytes(12)),
                                facade().Alloc(kPlace, Mebibytes(12), stream)};
  EXPECT_EQ(facade().LargestStreamPeak(kPlace), Mebibytes(14));
  EXPECT_EQ(Now().peak_in_use_bytes, Mebibytes(24));
}

TEST_F(FacadeStatsTest, ThePeakOfOneStreamIsExact) {
  Build();
  const Stream stream = NewStream();
  facade().Alloc(kPlace, Mebibytes(12), stream).reset();
  facade().Alloc(kPlace, Mebibytes(1), stream).reset();
  EXPECT_EQ(Now().peak_in_use_bytes, Mebibytes(12));
  EXPECT_FALSE(Now().peak_in_use_is_bound);
  facade().StreamDestroyed(stream);
  EXPECT_EQ(Now().peak_in_use_bytes, Mebibytes(12));
  EXPECT_FALSE(Now().peak_in_use_is_bound);
}

TEST_F(FacadeStatsTest, ThePeakOfVeryManyStreamsIsABound) {
  Build();
  for (std::size_t i = 0; i <= PlacePeak::kMostChains; ++i) {
    facade().Alloc(kPlace, Mebibytes(1), NewStream()).reset();
  }
  EXPECT_TRUE(Now().peak_in_use_is_bound);
  EXPECT_GT(Now().peak_in_use_bytes, Mebibytes(1));
  const auto json = nlohmann::json::parse(facade().StatsJson());
  EXPECT_EQ(json["device:0"]["peak_in_use_is_bound"], true);
  EXPECT_EQ(json["host"]["peak_in_use_is_bound"], false);
  facade().ResetPeak(kPlace);
  EXPECT_FALSE(Now().peak_in_use_is_bound);
}

TEST_F(FacadeStatsTest, StreamsInTurnPeakNoHigherThanWhatIsReserved) {
  for (const std::string strategy :
       {"auto_growth", "bfc", "direct", "naive_best_fit", "thread_local",
        "pool", "cuda_malloc_async"}) {
    SCOPED_TRACE(strategy);
    Build("allocator_strategy=" + strategy);
    for (int i = 0; i < 5; ++i) {
      const Stream stream = NewStream();
      facade().Alloc(kPlace, Mebibytes(10), stream).reset();
      if (i != 2) facade().StreamDestroyed(stream);
      facade().Release(kPlace);
    }
    const Stats stats = Now();
    EXPECT_LE(stats.peak_in_use_bytes, stats.peak_reserved_bytes);
    EXPECT_GE(stats.peak_in_use_bytes, Mebibytes(10));
  }
}

// Each capture has its own chain at the place.
TEST_F(FacadeStatsTest, PoolsOfGraphsInTurnPeakNoHigherThanWhatIsReserved) {
  Build();
  const Stream stream = NewStream();
  for (int i = 0; i < 5; ++i) {
    CaptureGuard guard(facade(), stream);
    facade().Alloc(kPlace, Mebibytes(10), stream).reset();
    ASSERT_EQ(device().GraphDestroy(guard.End()), Status::kSuccess);
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    device().MemGetInfo(&free_bytes,
                        &total_bytes);  // reports the end of the graph
    facade().Release(kPlace);
  }
  const Stats stats = Now();
  EXPECT_LE(stats.peak_in_use_bytes, stats.peak_reserved_bytes);
  EXPECT_GE(stats.peak_in_use_bytes, Mebibytes(10));
}

TEST_F(FacadeStatsTest, TheExactPeakIsExactOverManyStreams) {
  Build("strata_exact_peak");
  for (std::size_t i = 0; i <= PlacePeak::kMostChains; ++i) {
    facade().Alloc(kPlace, Mebibytes(1), NewStream()).reset();
  }
  EXPECT_EQ(Now().peak_in_use_bytes, Mebibytes(1));
  EXPECT_FALSE(Now().peak_in_use_is_bound);
}

TEST_F(FacadeStatsTest, ThePeakIsNotMissedWhenStreamsAlternate) {
  // A allocates 10 and frees them, B allocates 5, A allocates 8: 13 at most,
  // never 15.
  Build("auto_growth_chunk_rule=exact");
  const Stream a = NewStream();
  const Stream b = NewStream();
  facade().Alloc(kPlace, Mebibytes(10), a).reset();
  const AllocationPtr five = facade().Alloc(kPlace, Mebibytes(5), b);
  const AllocationPtr eight = facade().Alloc(kPlace, Mebibytes(8), a);
  EXPECT_EQ(Now().peak_in_use_bytes, Mebibytes(13));
}

TEST_F(FacadeStatsTest, ResetPeakForgetsEveryPeak) {
  for (const char* options : {"", "strata_exact_peak"}) {
    Build(options);
    const Stream stream = NewStream();
    facade().Alloc(kPlace, Mebibytes(12)).reset();
    facade().Alloc(kPlace, Mebibytes(14), stream).reset();
    facade().StreamDestroyed(stream);  // the peak stays, but not forever
    const AllocationPtr held = facade().Alloc(kPlace, 1024);
    EXPECT_GT(Now().peak_in_use_bytes, Mebibytes(1));
    facade().ResetPeak(kPlace);
    EXPECT_EQ(Now().peak_in_use_bytes, 1024U);
    EXPECT_EQ(facade().LargestStreamPeak(kPlace), 1024U);
    EXPECT_EQ(Now().peak_reserved_bytes, Now().reserved_bytes);
  }
}

TEST_F(FacadeStatsTest, SaysTheLimitInForce) {
  Build("gpu_memory_limit_mb=10");
  EXPECT_EQ(Now().limit_bytes, Mebibytes(10));
  EXPECT_EQ(facade().GetStats(HostPlace()).limit_bytes, 0U);
}

TEST_F(FacadeStatsTest, SaysTheBudgetInForce) {
  Build("strata_in_use_limit=10MiB");
  EXPECT_EQ(Now().limit_bytes, Mebibytes(10));
  EXPECT_EQ(Now().in_use_limit_bytes, Mebibytes(10));
  EXPECT_EQ(Now().reserved_limit_bytes, 0U);
}

TEST_F(FacadeStatsTest, OfTwoLimitsTheSmallerOneHolds) {
  for (const std::size_t budget : {std::size_t{10}, std::size_t{30}}) {
    Build("gpu_memory_limit_mb=20,strata_in_use_limit=" +
          std::to_string(budget) + "MiB");
    EXPECT_EQ(Now().in_use_limit_bytes, Mebibytes(budget));
    EXPECT_EQ(Now().reserved_limit_bytes, Mebibytes(20));
    EXPECT_EQ(Now().limit_bytes, Mebibytes(std::min<std::size_t>(budget, 20)));
    const auto json = nlohmann::json::parse(facade().StatsJson())["device:0"];
    EXPECT_EQ(json["limit_bytes"], Now().limit_bytes);
    EXPECT_EQ(json["in_use_limit_bytes"], Mebibytes(budget));
    EXPECT_EQ(json["reserved_limit_bytes"], Mebibytes(20));
    EXPECT_EQ(json["limits"]["--gpu_memory_limit_mb"], Mebibytes(20));
    EXPECT_EQ(json["limits"]["--strata_in_use_limit"], Mebibytes(budget));
  }
}

TEST_F(FacadeStatsTest, SaysTheLimitOfTheStrategy) {
  Build("allocator_strategy=bfc,bfc_memory_limit=20MiB");
  EXPECT_EQ(Now().reserved_limit_bytes, Mebibytes(20));
  EXPECT_STREQ(Now().reserved_limit_flag, "--bfc_memory_limit");
  EXPECT_EQ(Now().limit_bytes, Mebibytes(20));
}

TEST_F(FacadeStatsTest, JsonHasTheNumbersOfEveryPlace) {
  Build();
  const AllocationPtr block = facade().Alloc(kPlace, 1000);
  const AllocationPtr host = facade().Alloc(HostPlace(), 77);
  const nlohmann::json json = nlohmann::json::parse(facade().StatsJson());
  EXPECT_EQ(json.size(), facade().places().size());
  EXPECT_EQ(json["device:0"]["allocations"], 1);
  EXPECT_EQ(json["device:0"]["requested_bytes"], 1000);
  EXPECT_EQ(json["device:0"]["in_use_bytes"], 1024);
  EXPECT_EQ(json["device:0"]["reserved_bytes"], Mebibytes(2));
  EXPECT_EQ(json["host"]["requested_bytes"], 77);
  EXPECT_EQ(json["pinned:0"]["allocations"], 0);
}

TEST_F(FacadeStatsTest, TheTraceHasARowForEveryCall) {
  const std::string path = testing::TempDir() + "strata_facade_trace.csv";
  Build("strata_trace_file=" + path);
  const Stream stream = NewStream();
  AllocationPtr first = facade().Alloc(kPlace, 1000);
  const auto data = reinterpret_cast<std::uintptr_t>(first->data());
  facade().Alloc(kPlace, 2000, stream).reset();
  EXPECT_THROW(facade().Alloc(kPlace, 2 * kMemoryBytes), OutOfMemory);
  facade_.reset();
  first.reset();  // the trace ends with the last allocation, not the facade

  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  const auto columns = std::count(line.begin(), line.end(), ',');
  EXPECT_EQ(line.rfind("Thread,Time,Action,Pointer,Size,Stream", 0), 0U);
  std::vector<std::string> actions;
  std::vector<std::string> rows;
  while (std::getline(file, line)) {
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), columns);
    rows.push_back(line);
    std::string action = line.substr(line.find(',', line.find(',') + 1) + 1);
    actions.push_back(action.substr(0, action.find(',')));
  }
  EXPECT_THAT(actions, testing::ElementsAre("allocate", "allocate", "free",
                                            "allocate failure", "free"));
  ASSERT_EQ(rows.size(), 5U);
  std::ostringstream pointer;
  pointer << "0x" << std::hex << data << ",1000,";
  EXPECT_THAT(rows.front(), testing::HasSubstr(pointer.str()));
  EXPECT_THAT(rows.back(), testing::HasSubstr(pointer.str()));
  EXPECT_THAT(rows[1],
              testing::HasSubstr(",2000," + std::to_string(stream.uid)));
  EXPECT_THAT(rows[3], testing::HasSubstr("(nil)"));
  std::remove(path.c_str());
}

// tf_bfc R56, and R51 for the blocks of a strategy.
TEST_F(FacadeStatsTest, EventsOfAllStreamsAddUpInOneFile) {
  const std::string path = testing::TempDir() + "strata_facade_events.json";
  Build("strata_trace_events_file=" + path + ",gpu_memory_limit_mb=32");
  const Stream stream = NewStream();
  AllocationPtr first = facade().Alloc(kPlace, 1000);
  AllocationPtr second = facade().Alloc(kPlace, 2000, stream);
  EXPECT_THROW(facade().Alloc(kPlace, 2 * kMemoryBytes), OutOfMemory);
  facade_.reset();
  first.reset();
  second.reset();  // the list ends with the last allocation, not the facade

  std::ifstream file(path);
  const auto events = nlohmann::json::parse(file);
  ASSERT_EQ(events.size(), 4U);
  const auto& args = events[1]["args"];
  EXPECT_EQ(args["allocator_name"], "virtual_memory");
  EXPECT_EQ(args["bytes_allocated"], 1024 + 2048);
  EXPECT_EQ(args["bytes_reserved"], Mebibytes(4));
  EXPECT_EQ(args["bytes_available"], Mebibytes(32) - 1024 - 2048);
  EXPECT_EQ(args["fragmentation"], 0);
  EXPECT_EQ(events[3]["args"]["peak_bytes_in_use"], 1024 + 2048);
  std::remove(path.c_str());
}

TEST_F(FacadeStatsTest, ATraceFileThatCannotBeWrittenIsAnError) {
  EXPECT_THAT(TextOf<std::invalid_argument>([&] {
                Build("strata_trace_file=/no/such/folder/trace.csv");
              }),
              testing::HasSubstr("strata_trace_file"));
  EXPECT_THAT(TextOf<std::invalid_argument>([&] {
                Build("strata_trace_events_file=/no/such/folder/events.json");
              }),
              testing::HasSubstr("strata_trace_events_file"));
  EXPECT_EQ(platform_.use_count(), 1);  // the facade left nothing
}

// The budget counts all streams, the requests count each stream.
TEST_F(FacadeStatsTest, WhatABudgetHoldsIsCountedOnce) {
  Build("strata_stat=false,strata_in_use_limit=32MiB");
  std::vector<AllocationPtr> held;
  for (int i = 0; i < 3; ++i) {
    held.push_back(facade().Alloc(kPlace, Mebibytes(1), NewStream()));
  }
  EXPECT_EQ(facade().GetStats(kPlace).requested_bytes, Mebibytes(3));
  held.clear();
  EXPECT_EQ(facade().GetStats(kPlace).requested_bytes, 0U);
}

}  // namespace
}  // namespace strata
