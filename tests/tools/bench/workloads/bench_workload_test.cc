#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "strata/tests/tools/bench/bench_fixture.h"
#include "strata/tools/bench/workloads/workload.h"

namespace strata::tools {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Threads = BenchWorkload::Threads;

std::set<std::string> Names(const std::vector<BenchWorkload>& workloads) {
  std::set<std::string> names;
  for (const BenchWorkload& workload : workloads) names.insert(workload.name);
  return names;
}

TEST(BenchWorkloadTest, HasEveryKindOnceAndFindsItByItsName) {
  const SmallBench bench;
  const std::vector<BenchWorkload> all = BenchWorkloads(bench.options());
  EXPECT_EQ(Names(all).size(), all.size());
  for (const BenchWorkload& workload : all) {
    EXPECT_EQ(FindBenchWorkload(workload.name, bench.options()).summary,
              workload.summary);
    EXPECT_FALSE(workload.summary.empty());
  }
  for (const char* name :
       {"pair", "lifo", "fifo", "training", "training_layers",
        "training_jittered", "trace:small", "random_100", "random_1000000",
        "random_small_100", "random_small_1000000", "pair_own_streams_2",
        "pair_one_stream_2", "hand_over"}) {
    EXPECT_EQ(Names(all).count(name), 1U) << name;
  }
}

TEST(BenchWorkloadTest, ANumberInANameMayBeAnother) {
  const BenchWorkload random = FindBenchWorkload("random_small_33", {});
  EXPECT_EQ(random.name, "random_small_33");
  EXPECT_EQ(random.live_blocks, 33U);
  EXPECT_EQ(random.make({}).prologue.size(), 33U);
  const BenchWorkload threads = FindBenchWorkload("pair_one_stream_7", {});
  EXPECT_EQ(threads.thread_count, 7U);
  EXPECT_EQ(threads.threads, Threads::kOneStream);
}

TEST(BenchWorkloadTest, LargeOnesAreLeftOutByDefault) {
  EXPECT_TRUE(FindBenchWorkload("random_100000", {}).is_default);
  EXPECT_FALSE(FindBenchWorkload("random_1000000", {}).is_default);
  EXPECT_FALSE(FindBenchWorkload("pair_own_streams_4", {}).is_default);
}

TEST(BenchWorkloadTest, AMillionBlocksAreSmallerSoThatADeviceHoldsThem) {
  EXPECT_THAT(FindBenchWorkload("random_100000", {}).summary,
              HasSubstr("64.0 MiB"));
  EXPECT_THAT(FindBenchWorkload("random_1000000", {}).summary,
              HasSubstr("16.0 MiB"));
}

TEST(BenchWorkloadTest, NamesTheKnownOnesWhenOneIsUnknown) {
  for (const char* name :
       {"pear", "random_", "random_0", "random_x", "random_99999999",
        "pair_own_streams_257", "random_-1", "trace:none", ""}) {
    try {
      FindBenchWorkload(name, {});
      FAIL() << "found a workload that does not exist: " << name;
    } catch (const std::invalid_argument& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr(name), HasSubstr("pair"),
                                      HasSubstr("random_small_100")));
    }
  }
}

TEST(BenchTracesTest, AFolderStandsForItsTraces) {
  const ScratchFolder folder;
  folder.Write("b.csv.gz", "");
  folder.Write("a.csv", "");
  folder.Write("README.md", "");
  const ScratchFolder other;
  const std::string single = other.Write("c.csv", "");
  std::string list = single;
  list += ',';
  list += folder.path().string();
  EXPECT_THAT(BenchTraces(list), ElementsAre(single, folder.path() / "a.csv",
                                             folder.path() / "b.csv.gz"));
  EXPECT_THAT(BenchTraces(""), ElementsAre());
}

TEST(BenchTracesTest, NamesWhatDoesNotExist) {
  try {
    BenchTraces("/no/such/file");
    FAIL() << "found a file that does not exist";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr("/no/such/file"));
  }
}

TEST(BenchTracesTest, TwoOfOneNameAreRefused) {
  BenchScriptOptions options;
  options.traces = {"/one/same.csv", "/two/same.csv.gz"};
  try {
    BenchWorkloads(options);
    FAIL() << "two workloads have one name";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr("trace:same"));
  }
}

}  // namespace
}  // namespace strata::tools
