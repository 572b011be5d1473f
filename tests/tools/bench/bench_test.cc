#include "strata/tools/bench/bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "strata/tests/tools/bench/bench_fixture.h"

namespace strata::tools {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

BenchPlan PlanFor(const std::string& allocator,
                  const std::vector<std::string>& worker_command) {
  BenchPlan plan;
  plan.workloads = {FindBenchWorkload("pair", {})};
  plan.allocators = {FindBenchAllocator(allocator)};
  plan.rounds = 3;
  plan.worker_command = worker_command;
  return plan;
}

BenchRow RunOne(const BenchPlan& plan) {
  const std::vector<BenchRow> rows = Bench(plan, [](const std::string&) {});
  EXPECT_EQ(rows.size(), 1U);
  return rows.at(0);
}

// A worker that answers every line with `answer`.
std::vector<std::string> Answering(const std::string& answer) {
  return {"/bin/sh", "-c", "while read line; do echo '" + answer + "'; done",
          "sh"};
}

TEST(BenchTest, TakesWhatTheWorkerMeasured) {
  const BenchRow row = RunOne(PlanFor(
      "auto_growth", Answering(R"({"pair_ns":41.5,"reserved_ratio":1.25})")));
  EXPECT_EQ(row.status, BenchRow::Status::kOk);
  EXPECT_THAT(row.pair_ns, ElementsAre(41.5, 41.5, 41.5));
  EXPECT_EQ(row.reserved_ratio, 1.25);
}

TEST(BenchTest, ReportsAnAnswerThatIsNoResult) {
  for (const char* answer :
       {"hello", "{}", R"({"pair_ns":"7","reserved_ratio":null})"}) {
    const BenchRow row = RunOne(PlanFor("null", Answering(answer)));
    EXPECT_EQ(row.status, BenchRow::Status::kFailed);
    EXPECT_EQ(row.note, std::string("its answer is no result: ") + answer);
    EXPECT_TRUE(row.pair_ns.empty());
  }
}

TEST(BenchTest, ReportsTheWorkersError) {
  const BenchRow row =
      RunOne(PlanFor("null", Answering(R"({"error":"out of luck"})")));
  EXPECT_EQ(row.status, BenchRow::Status::kFailed);
  EXPECT_EQ(row.note, "out of luck");
}

TEST(BenchTest, ARowThatIsLeftOutSaysWhy) {
  const BenchRow row =
      RunOne(PlanFor("glibc", Answering(R"({"left_out":"too much"})")));
  EXPECT_EQ(row.status, BenchRow::Status::kLeftOut);
  EXPECT_EQ(row.note, "too much");
  EXPECT_TRUE(row.pair_ns.empty());
}

TEST(BenchTest, ARowKnowsItsWorkload) {
  BenchPlan plan = PlanFor("null", {"/no/such/program"});
  plan.workloads = {FindBenchWorkload("random_30", {})};
  EXPECT_EQ(RunOne(plan).live_blocks, 30U);
  plan.workloads = {FindBenchWorkload("pair_one_stream_3", {})};
  const BenchRow row = RunOne(plan);
  EXPECT_EQ(row.threads, BenchWorkload::Threads::kOneStream);
  EXPECT_EQ(row.thread_count, 3U);
}

TEST(BenchTest, ReportsAWorkerThatEnds) {
  const BenchRow row = RunOne(PlanFor("null", {"/bin/sh", "-c", "exit 4"}));
  EXPECT_EQ(row.status, BenchRow::Status::kFailed);
  EXPECT_EQ(row.note, "it ended with exit code 4");
}

TEST(BenchTest, ReportsAWorkerThatCannotStart) {
  const BenchRow row = RunOne(PlanFor("null", {"/no/such/program"}));
  EXPECT_EQ(row.status, BenchRow::Status::kFailed);
  EXPECT_THAT(row.note, HasSubstr("/no/such/program"));
}

TEST(BenchTest, GoesOnWithTheOthersWhenOneWorkerFails) {
  BenchPlan plan =
      PlanFor("null", {"/bin/sh", "-c",
                       "[ $1 = null ] && exit 1; while read line; do "
                       "echo '{\"pair_ns\":1,\"reserved_ratio\":null}'; done",
                       "sh"});
  plan.allocators.push_back(FindBenchAllocator("glibc"));
  const std::vector<BenchRow> rows = Bench(plan, [](const std::string&) {});
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].status, BenchRow::Status::kFailed);
  EXPECT_EQ(rows[1].status, BenchRow::Status::kOk);
}

TEST(BenchTest, ALibraryThatIsMissingIsARowThatSaysSo) {
  const ScratchFolder empty;
  for (const char* name : {"jemalloc", "mimalloc", "tcmalloc"}) {
    BenchPlan plan = PlanFor(name, {"/no/such/program"});
    plan.library_folders = {empty.path(), empty.path() / "none"};
    const BenchRow row = RunOne(plan);
    EXPECT_EQ(row.status, BenchRow::Status::kNotInstalled);
    EXPECT_THAT(row.note, HasSubstr("not installed"));
  }
}

TEST(BenchTest, FindsALibraryWhateverItsVersion) {
  const ScratchFolder folder;
  folder.Write("libjemalloc.so.2", "");
  folder.Write("libjemalloc_pic.a", "");
  EXPECT_EQ(FindLibrary("libjemalloc.so", {"/no/such/folder", folder.path()}),
            folder.path() / "libjemalloc.so.2");
  EXPECT_EQ(FindLibrary("libmimalloc.so", {folder.path()}), fs::path());
}

// Two host allocators, one strategy, and one missing row.
std::vector<BenchRow> SomeRows() {
  using Kind = BenchAllocator::Kind;
  std::vector<BenchRow> rows(4);
  rows[0].allocator = "auto_growth";
  rows[0].kind = Kind::kFacade;
  rows[0].pair_ns = {50, 10, 30};
  rows[0].reserved_ratio = 1.5;
  rows[1].allocator = "glibc";
  rows[1].kind = Kind::kMalloc;
  rows[1].pair_ns = {40, 60, 50};
  rows[2].allocator = "tcmalloc";
  rows[2].kind = Kind::kMalloc;
  rows[2].pair_ns = {20, 20, 20};
  rows[3].allocator = "jemalloc";
  rows[3].kind = Kind::kMalloc;
  rows[3].status = BenchRow::Status::kNotInstalled;
  rows[3].note = "not installed: no libjemalloc.so*";
  for (BenchRow& row : rows) row.workload = "pair";
  return rows;
}

TEST(BenchReportTest, TakesTheMedianOfTheRounds) {
  BenchRow row;
  EXPECT_FALSE(row.MedianNs().has_value());
  row.pair_ns = {9, 1, 4};
  EXPECT_EQ(row.MedianNs(), 4);
  EXPECT_EQ(row.MinNs(), 1);
  row.pair_ns = {9, 1, 4, 6};
  EXPECT_EQ(row.MedianNs(), 5);
}

TEST(BenchReportTest, ComparesOnlyWithMallocsOfTheSameWorkload) {
  std::vector<BenchRow> rows = SomeRows();
  EXPECT_EQ(BestMallocNs(rows, "pair"), 20);
  EXPECT_FALSE(BestMallocNs(rows, "lifo").has_value());
  rows[2].workload = "lifo";
  EXPECT_EQ(BestMallocNs(rows, "pair"), 50);
}

TEST(BenchReportTest, JsonHasEveryKeyInEveryRow) {
  const auto json = nlohmann::json::parse(ToJson(SomeRows()));
  ASSERT_EQ(json.size(), 4U);
  for (const auto& row : json) {
    std::set<std::string> keys;
    for (const auto& [key, value] : row.items()) keys.insert(key);
    EXPECT_THAT(keys, ElementsAre("allocator", "note", "ns_median", "ns_min",
                                  "ratio_to_best_malloc", "reserved_ratio",
                                  "rounds", "status", "workload"));
  }
  EXPECT_EQ(json[0]["ns_median"], 30);
  EXPECT_EQ(json[0]["ns_min"], 10);
  EXPECT_EQ(json[0]["ratio_to_best_malloc"], 1.5);
  EXPECT_EQ(json[0]["reserved_ratio"], 1.5);
  EXPECT_EQ(json[0]["rounds"], 3);
  EXPECT_TRUE(json[1]["reserved_ratio"].is_null());
  EXPECT_TRUE(json[3]["ns_median"].is_null());
  EXPECT_EQ(json[3]["status"], "not_installed");
}

TEST(BenchReportTest, TableSaysWhatIsMissing) {
  const std::string text = ToTable(SomeRows());
  EXPECT_THAT(text, AllOf(HasSubstr("auto_growth"), HasSubstr("30.0"),
                          HasSubstr("not installed: no libjemalloc.so*")));
}

}  // namespace
}  // namespace strata::tools
