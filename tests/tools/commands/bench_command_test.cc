// `strata bench` as users call it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

#include "strata/tests/testing/scoped_variable.h"
#include "strata/tests/tools/bench/bench_fixture.h"
#include "strata/tests/tools/command.h"
#include "strata/tests/tools/temp_file.h"
#include "strata/tools/bench/workloads/workload.h"

namespace strata::tools {
namespace {

using testing::HasSubstr;

CommandResult RunBench(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "bench");
  return RunStrata(arguments);
}

TEST(BenchCommandTest, MeasuresInWorkers) {
  const CommandResult result =
      RunBench({"--format=json", "--bench_rounds=2", "--bench_operations=10",
                "--bench_workloads=pair,lifo",
                "--bench_allocators=null,auto_growth,glibc"});
  ASSERT_EQ(result.code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  ASSERT_EQ(json.size(), 6U);
  for (const auto& row : json) {
    EXPECT_EQ(row["status"], "ok") << row;
    EXPECT_EQ(row["rounds"], 2);
    EXPECT_TRUE(row["ns_median"].is_number());
  }
  EXPECT_EQ(json[4]["workload"], "lifo");
  EXPECT_EQ(json[4]["allocator"], "auto_growth");
}

TEST(BenchCommandTest, GivesTheWorkersTheFlagsOfStrategies) {
  const CommandResult result = RunBench(
      {"--format=json", "--bench_rounds=1", "--bench_operations=10",
       "--bench_workloads=random_10", "--bench_allocators=auto_growth",
       "--strata_platform=sim", "--strata_sim_fault=mem_alloc:every=1"});
  EXPECT_EQ(result.code, 1) << result.err;
  EXPECT_THAT(result.out, HasSubstr("cannot allocate"));
}

// Its workers would overwrite the recordings of each other, and the input.
TEST(BenchCommandTest, RecordsNothing) {
  const TempFile trace;
  trace.Write(std::string(kHeader) + "1,0,allocate,0x10,64,0\n");
  const std::string before = trace.Read();
  for (const char* flag :
       {"strata_trace_file", "strata_device_trace_file", "bench_plot"}) {
    const CommandResult result = RunBench(
        {"--bench_rounds=1", "--bench_operations=10",
         "--bench_workloads=random_10", "--bench_allocators=auto_growth",
         "--bench_trace=" + trace.path(),
         std::string("--") + flag + "=" + trace.path()});
    EXPECT_EQ(result.code, 2) << flag;
    EXPECT_THAT(result.err, HasSubstr(std::string("--") + flag + "="));
    EXPECT_EQ(trace.Read(), before) << flag;
  }
}

TEST(BenchCommandTest, RunRecordsOverNothingThatItReads) {
  const TempFile trace;
  trace.Write(std::string(kHeader) + "1,0,allocate,0x10,64,0\n");
  const std::string before = trace.Read();
  for (const char* flag :
       {"strata_trace_file", "strata_device_trace_file", "bench_plot"}) {
    const CommandResult result =
        RunBench({"run", "auto_growth", "pair", "--bench_operations=1",
                  "--bench_trace=" + trace.path(),
                  std::string("--") + flag + "=" + trace.path()});
    EXPECT_EQ(result.code, 2) << flag;
    EXPECT_THAT(result.err, HasSubstr(std::string("--") + flag));
    EXPECT_EQ(trace.Read(), before) << flag;
  }
}

TEST(BenchCommandTest, RunRefusesWhatSaysHowToMeasure) {
  for (const char* flag :
       {"bench_workloads=pair", "bench_allocators=null", "bench_rounds=3",
        "bench_plot=/dev/null", "format=table"}) {
    const CommandResult result =
        RunBench({"run", "null", "pair", "--bench_operations=1",
                  std::string("--") + flag});
    EXPECT_EQ(result.code, 2) << flag;
    EXPECT_THAT(result.err, HasSubstr(std::string(flag).substr(
                                          0, std::string(flag).find('=')) +
                                      ": bench run measures nothing"));
  }
  EXPECT_EQ(RunBench({"run", "null", "pair", "--bench_operations=1"}).code, 0);
}

// The file would not exist.
TEST(BenchCommandTest, RunRecordsWhatThereIsToRecord) {
  const TempFile file;
  for (const char* allocator : {"null", "glibc", "peer:pytorch", "library"}) {
    const CommandResult result =
        RunBench({"run", allocator, "pair", "--bench_operations=1",
                  "--bench_library=" STRATA_HEAP_LIBRARY,
                  "--strata_trace_file=" + file.path()});
    EXPECT_EQ(result.code, 2);
    EXPECT_THAT(result.err,
                HasSubstr(std::string(allocator) + " does not record it"));
  }
  EXPECT_EQ(RunBench({"run", "peer:pytorch", "pair", "--bench_operations=1",
                      "--strata_device_trace_file=" + file.path()})
                .code,
            0);
  EXPECT_THAT(file.Read(), HasSubstr("mem_alloc"));
}

TEST(BenchCommandTest, RunMakesSoManyPairs) {
  for (const char* workload : {"lifo", "training", "random_10", "pair"}) {
    const TempFile file;
    const CommandResult result = RunBench(
        {"run", "auto_growth", workload, "--bench_operations=130",
         "--strata_platform=sim", "--strata_trace_file=" + file.path()});
    ASSERT_EQ(result.code, 0) << result.err;
    const std::string rows = file.Read();
    std::size_t allocations = 0;
    for (std::size_t at = rows.find(",allocate,"); at != std::string::npos;
         at = rows.find(",allocate,", at + 1)) {
      ++allocations;
    }
    const BenchScript script =
        FindBenchWorkload(workload, BenchScriptOptions()).make({});
    EXPECT_EQ(allocations, script.prologue.size() + 130) << workload;
  }
}

TEST(BenchCommandTest, NothingIsDrawnOverTheLibrary) {
  const TempFile library;
  library.Write("a library");
  const CommandResult result = RunBench(
      {"--bench_workloads=random_10", "--bench_allocators=null",
       "--bench_library=" + library.path(), "--bench_plot=" + library.path()});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("--bench_plot=" + library.path() +
                                    " is a file that is read"));
  EXPECT_EQ(library.Read(), "a library");
}

TEST(BenchCommandTest, ALibraryMayHaveAnyName) {
  const ScratchFolder folder;
  folder.Write("l\xff.so", "junk");
  const CommandResult result =
      RunBench({"--bench_workloads=pair", "--bench_allocators=library",
                "--bench_rounds=1", "--bench_operations=1",
                "--bench_library=" + (folder.path() / "l\xff.so").string()});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out + result.err, HasSubstr("file too short"));
}

// The row is named after the measured strategy.
TEST(BenchCommandTest, TheEnvironmentChoosesNoOtherStrategy) {
  const ScopedVariable variable("TF_GPU_ALLOCATOR", "cuda_malloc");
  for (std::vector<std::string> arguments :
       {std::vector<std::string>{"--bench_workloads=pair",
                                 "--bench_allocators=direct,bfc"},
        std::vector<std::string>{"run", "c:auto_growth", "pair"}}) {
    arguments.push_back("--strata_tf_environment");
    const CommandResult result = RunBench(arguments);
    EXPECT_EQ(result.code, 2);
    EXPECT_THAT(result.err, HasSubstr("the environment has direct run for"));
  }
  EXPECT_EQ(RunBench({"run", "direct", "pair", "--bench_operations=1",
                      "--strata_platform=sim", "--strata_tf_environment"})
                .code,
            0);
}

// Also for the default size of a device.
TEST(BenchCommandTest, ADeviceIsAsLargeAsIsAskedFor) {
  const CommandResult result =
      RunBench({"--bench_workloads=random_25000", "--bench_allocators=direct",
                "--bench_rounds=1", "--bench_operations=1",
                "--strata_platform=sim", "--strata_sim_memory=80GiB"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.out, HasSubstr("the device has 80.0 GiB"));
}

TEST(BenchCommandTest, SaysWhatRanOut) {
  const CommandResult result =
      RunBench({"run", "auto_growth", "random_1000", "--strata_platform=sim",
                "--strata_sim_memory=2MiB"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("the device is out of memory"));
}

TEST(BenchCommandTest, ListsOfNothingAreRefused) {
  for (const char* flag : {"bench_workloads", "bench_allocators"}) {
    const CommandResult result = RunBench({std::string("--") + flag + "="});
    EXPECT_EQ(result.code, 2);
    EXPECT_THAT(result.err, HasSubstr(std::string("--") + flag));
  }
}

// The workers read the files that this process found, and not the plot that it
// writes meanwhile.
TEST(BenchCommandTest, AFileOfAFolderMayHaveAnyName) {
  const ScratchFolder folder;
  folder.Write("a,b.csv", std::string(kHeader) + "1,0,allocate,0x10,64,0\n");
  std::filesystem::create_directory(folder.path() / "inner");
  const CommandResult result =
      RunBench({"--bench_rounds=1", "--bench_operations=10",
                "--bench_workloads=random_10", "--bench_allocators=null",
                "--bench_trace=" + folder.path().string(),
                "--bench_plot=" + (folder.path() / "a,b.svg").string()});
  EXPECT_EQ(result.code, 0) << result.err;
}

TEST(BenchCommandTest, WhatIsLeftOutIsNoFailure) {
  const CommandResult result = RunBench(
      {"--bench_rounds=1", "--bench_operations=10",
       "--bench_workloads=random_1000", "--bench_allocators=null,direct",
       "--strata_platform=sim", "--strata_sim_memory=1GiB"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("the device has 1.0 GiB"));
}

TEST(BenchCommandTest, RunsOneOnceForProfilers) {
  const CommandResult result =
      RunBench({"run", "c:auto_growth", "pair_own_streams_2",
                "--bench_operations=10", "--strata_platform=sim"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, "");
}

TEST(BenchCommandTest, DrawsWhatItMeasured) {
  const ScratchFolder folder;
  const std::string path = folder.Write("plot.svg", "");
  std::string plot = "--bench_plot=";
  plot += path;
  const CommandResult result = RunBench(
      {"--bench_rounds=1", "--bench_operations=10", "--bench_allocators=null",
       "--bench_workloads=random_10,random_20", plot});
  EXPECT_EQ(result.code, 0) << result.err;
  std::ostringstream svg;
  svg << std::ifstream(path).rdbuf();
  EXPECT_THAT(svg.str(), HasSubstr(">random: ns a pair<"));
}

TEST(BenchCommandTest, HelpNamesWhatThereIs) {
  const CommandResult result = RunBench({"--help"});
  EXPECT_EQ(result.code, 0);
  for (const char* name :
       {"hand_over", "random_1000000*", "c:auto_growth", "peer:paddle",
        "bfc_fast*", "--bench_plot", "driver:malloc_async*", "library*",
        "--bench_library"}) {
    EXPECT_THAT(result.out, HasSubstr(name));
  }
}

TEST(BenchCommandTest, MeasuresATrace) {
  const ScratchFolder folder;
  std::string trace = "--bench_trace=";
  trace += folder.Write("trace.csv", kTraceText);
  const CommandResult result = RunBench(
      {"--bench_rounds=1", "--bench_operations=10", "--bench_allocators=null",
       "--bench_workloads=trace:trace", trace});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("trace:trace"));
}

struct WrongArguments {
  std::vector<std::string> arguments;
  const char* reason;
};
std::ostream& operator<<(std::ostream& out, const WrongArguments& wrong) {
  for (const std::string& one : wrong.arguments) out << one << ' ';
  return out;
}

class BenchRefusalTest : public ::testing::TestWithParam<WrongArguments> {};

TEST_P(BenchRefusalTest, IsOneLineThatNamesTheReason) {
  const CommandResult result = RunBench(GetParam().arguments);
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr(GetParam().reason));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1)
      << result.err;
}

INSTANTIATE_TEST_SUITE_P(
    All, BenchRefusalTest,
    ::testing::Values(
        WrongArguments{{"--bench_workloads=pear"}, "known: pair"},
        WrongArguments{{"--bench_workloads=pair,"}, "there is no workload ''"},
        WrongArguments{{"--bench_allocators=dlmalloc"}, "known: null"},
        WrongArguments{{"--bench_rounds=0"}, "bench_rounds"},
        WrongArguments{{"--bench_rounds=many"}, "'many'"},
        WrongArguments{{"--bench_operations=-1"}, "bench_operations"},
        WrongArguments{{"--bench_seed=0"}, "bench_seed"},
        WrongArguments{{"--bench_workloads=trace:none"}, "known: pair"},
        WrongArguments{{"--bench_trace=/no/such/file"}, "/no/such/file"},
        WrongArguments{{"--bench_trace=/dev/null"},
                       "/dev/null: every allocator reads it"},
        WrongArguments{{"--bench_plot=/dev/null", "--bench_workloads=pair"},
                       "no workload has a number"},
        WrongArguments{{"--bench_plot=/no/such/folder/plot.svg"},
                       "cannot write /no/such/folder"},
        WrongArguments{{"--format=xml"}, "known: table, json"},
        WrongArguments{{"pair"}, "no argument 'pair'"},
        WrongArguments{{"worker", "null"}, "an allocator and a workload"},
        WrongArguments{{"run", "null", "pear"}, "known: pair"},
        WrongArguments{{"--bench_wrong=1"}, "bench_wrong"}));

TEST(BenchCommandTest, AWorkerWithoutItsLibrarySaysSo) {
  const CommandResult result = RunBench({"worker", "jemalloc", "pair"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("could not be preloaded"));
}

}  // namespace
}  // namespace strata::tools
