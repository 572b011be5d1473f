// Results of `strata bench` for the driver's own calls (driver_heap.h).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "strata/tests/tools/bench/bench_fixture.h"
#include "strata/tests/tools/command.h"
#include "strata/tools/bench/subject.h"

namespace strata::tools {
namespace {

// `allocator` on a simulated device with the faults `faults`.
std::unique_ptr<BenchSubject> MakeSubject(const char* allocator,
                                          const char* workload_name,
                                          const std::string& faults = "") {
  const SmallBench bench;
  const BenchWorkload workload =
      FindBenchWorkload(workload_name, bench.options());
  Options options = Options::Parse("strata_platform=sim");
  options.platform.sim_faults = faults;
  return MakeBenchSubject(FindBenchAllocator(allocator), workload,
                          workload.make(bench.options()), options, {});
}

// The error that ends a run.
std::string ErrorOf(const char* allocator, const char* workload,
                    const std::string& faults) {
  try {
    MakeSubject(allocator, workload, faults)->Run(200);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "nothing";
}

TEST(BenchDriverTest, CountsTheCallsOfItsKind) {
  for (const char* allocator : {"driver:malloc", "driver:malloc_async"}) {
    const auto subject = MakeSubject(allocator, "pair_own_streams_3");
    subject->Run(40);
    EXPECT_EQ(subject->allocations(), 120U) << allocator;
  }
}

TEST(BenchDriverTest, OnlyAPoolTellsWhatItReserves) {
  const auto pool = MakeSubject("driver:malloc_async", "random_50");
  pool->Run(100);
  EXPECT_GE(pool->peak_reserved_bytes(), pool->peak_live_bytes());
  EXPECT_LE(pool->peak_reserved_bytes(), 4 * pool->peak_live_bytes());
  const auto at_once = MakeSubject("driver:malloc", "random_50");
  at_once->Run(100);
  EXPECT_FALSE(at_once->peak_reserved_bytes().has_value());
}

TEST(BenchDriverTest, NamesTheStatusOfACallThatFailed) {
  EXPECT_EQ(ErrorOf("driver:malloc", "random_50", "mem_alloc:nth=60"),
            "driver: cannot allocate or free: MemoryAllocation");
  EXPECT_EQ(ErrorOf("driver:malloc_async", "random_50",
                    "malloc_from_pool_async:nth=60"),
            "driver: cannot allocate or free: MemoryAllocation");
  EXPECT_EQ(ErrorOf("driver:malloc_async", "pair",
                    "default_mem_pool:status=NotSupported"),
            "driver: no pool: NotSupported");
  EXPECT_EQ(ErrorOf("driver:malloc_async", "pair",
                    "pool_set_attribute:status=NotPermitted"),
            "driver: no pool: NotPermitted");
}

// Afterwards no memory can be freed at the end either, but the process
// continues.
TEST(BenchDriverTest, AnErrorThatStaysIsReportedAsAnyOther) {
  for (const char* workload : {"random_50", "pair_one_stream_3", "hand_over"}) {
    EXPECT_EQ(ErrorOf("driver:malloc", workload, "mem_free:nth=10,sticky=1"),
              "driver: cannot allocate or free: IllegalAddress")
        << workload;
    EXPECT_EQ(
        ErrorOf("driver:malloc_async", workload, "free_async:nth=10,sticky=1"),
        "driver: cannot allocate or free: IllegalAddress")
        << workload;
  }
}

TEST(BenchDriverTest, IsMeasuredByTheCommand) {
  const CommandResult result = RunStrata(
      {"bench", "--format=json", "--bench_rounds=1", "--bench_operations=10",
       "--bench_workloads=lifo", "--strata_platform=sim",
       "--bench_allocators=driver:malloc,driver:malloc_async"});
  ASSERT_EQ(result.code, 0) << result.err;
  const auto rows = nlohmann::json::parse(result.out);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_TRUE(rows[0].at("reserved_ratio").is_null());
  EXPECT_GE(rows[1].at("reserved_ratio"), 1);
}

TEST(BenchDriverTest, AFailureIsARowWithTheStatus) {
  const CommandResult result = RunStrata(
      {"bench", "--format=json", "--bench_rounds=1", "--bench_operations=10",
       "--bench_workloads=lifo", "--strata_platform=sim",
       "--strata_sim_fault=mem_alloc:every=1",
       "--bench_allocators=driver:malloc"});
  EXPECT_EQ(result.code, 1) << result.err;
  EXPECT_EQ(nlohmann::json::parse(result.out).at(0).at("note"),
            "driver: cannot allocate or free: MemoryAllocation");
}

}  // namespace
}  // namespace strata::tools
