// The `strata` program on the command line: commands, flags and exit codes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "strata/strategy/registry.h"
#include "strata/tests/tools/command_line_fixture.h"

namespace strata::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST_F(CommandLineTest, HelpIsOnStdout) {
  for (const char* help : {"help", "--help", "-h"}) {
    const CommandResult result = RunStrata({help});
    EXPECT_EQ(result.code, 0);
    EXPECT_THAT(result.out, HasSubstr("replay"));
    EXPECT_THAT(result.err, IsEmpty());
  }
  EXPECT_THAT(RunStrata({"help", "replay"}).out,
              StartsWith("usage: strata replay"));
  EXPECT_THAT(RunStrata({"replay", "--help"}).out,
              StartsWith("usage: strata replay"));
  EXPECT_THAT(RunStrata({"--version"}).out, StartsWith("strata 0."));
}

TEST_F(CommandLineTest, WithoutACommandPrintsUsageOnStderr) {
  const CommandResult result = RunStrata({});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.out, IsEmpty());
  EXPECT_THAT(result.err, StartsWith("usage: strata"));
}

TEST_F(CommandLineTest, UnknownCommandIsNamed) {
  const CommandResult result = RunStrata({"replai"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.out, IsEmpty());
  EXPECT_THAT(result.err, StartsWith("strata: unknown command 'replai'\n"));
  EXPECT_THAT(RunStrata({"help", "replai"}).err, HasSubstr("'replai'"));
}

TEST_F(CommandLineTest, UnknownStrategyNamesTheKnownOnes) {
  const CommandResult result = RunStrata(
      {"replay", small_.path(), "--allocator_strategy=auto_growth,best"});
  ExpectRefused(result, "unknown strategy 'best'");
  for (const std::string& name : StrategyNames()) {
    EXPECT_THAT(result.err, HasSubstr(name));
  }
}

TEST_F(CommandLineTest, ListOfStrategiesIsForReplayOnly) {
  ExpectRefused(RunStrata({"info", "--allocator_strategy=auto_growth,direct"}),
                "unknown strategy 'auto_growth,direct'");
}

TEST_F(CommandLineTest, UnknownFlagIsRefused) {
  ExpectRefused(RunStrata({"replay", small_.path(), "--fitt"}),
                "unknown command line flag 'fitt'");
}

TEST_F(CommandLineTest, WrongValueOfAFlagIsRefused) {
  ExpectRefused(RunStrata({"replay", small_.path(), "--strata_sim_devices=x"}),
                "strata_sim_devices");
  ExpectRefused(RunStrata({"replay", small_.path(), "--strata_sim_memory=8QB"}),
                "strata_sim_memory: '8QB'");
  ExpectRefused(RunStrata({"replay", small_.path(), "--format=xml"}),
                "--format: unknown value 'xml'");
}

TEST_F(CommandLineTest, DeviceWithoutMemoryIsRefused) {
  ExpectRefused(RunStrata({"replay", small_.path(), "--strata_sim_memory=0"}),
                "strata_sim_memory: 0 bytes");
}

TEST_F(CommandLineTest, PlatformOtherThanSimIsRefused) {
  ExpectRefused(RunStrata({"replay", small_.path(), "--strata_platform=cuda"}),
                "strata_platform: ");
}

TEST_F(CommandLineTest, EnvironmentGivesDefaultsThatFlagsOverride) {
  const std::vector<std::string> environment = {
      "FLAGS_allocator_strategy=direct", "FLAGS_strata_sim_memory=4MiB"};
  const CommandResult small =
      RunStrata({"replay", small_.path(), "--format=json"}, environment);
  EXPECT_EQ(small.code, 1);
  EXPECT_EQ(nlohmann::json::parse(small.out)[0]["strategy"], "direct");
  EXPECT_EQ(RunStrata({"replay", small_.path(), "--strata_sim_memory=1GiB"},
                      environment)
                .code,
            0);
}

TEST_F(CommandLineTest, WrongEnvironmentVariableIsNamed) {
  ExpectRefused(RunStrata({"replay", small_.path()},
                          {"FLAGS_auto_growth_chunk_size_in_mb=-1"}),
                "environment variable FLAGS_auto_growth_chunk_size_in_mb: "
                "'-1'");
  ExpectRefused(RunStrata({"info"}, {"FLAGS_strata_sim_memory=much"}),
                "environment variable FLAGS_strata_sim_memory: 'much'");
}

// Once, although the program reads its flags several times.
TEST_F(CommandLineTest, ARemovedFlagIsWarnedOfOnce) {
  constexpr const char* kFlag = "auto_growth_step_plan";
  const CommandResult plain = RunStrata({"info"});
  for (const CommandResult& result :
       {RunStrata({"info", std::string("--no") + kFlag}),
        RunStrata({"info", std::string("--") + kFlag + "=true"}),
        RunStrata({"info"}, {std::string("FLAGS_") + kFlag + "=0"})}) {
    EXPECT_EQ(result.code, 0);
    EXPECT_EQ(result.out, plain.out);
    const std::size_t warning = result.err.find(kFlag);
    ASSERT_NE(warning, std::string::npos);
    EXPECT_THAT(result.err, HasSubstr("has no effect any more"));
    EXPECT_EQ(result.err.find(kFlag, warning + 1), std::string::npos);
  }
}

TEST_F(CommandLineTest, ContradictingFlagsAreNamed) {
  ExpectRefused(RunStrata({"replay", small_.path(), "--use_system_allocator",
                           "--allocator_strategy=auto_growth"}),
                "use_system_allocator contradicts allocator_strategy");
  EXPECT_THAT(
      RunStrata({"replay", small_.path(), "--use_system_allocator"}).out,
      HasSubstr("direct"));
}

TEST_F(CommandLineTest, OutputThatCannotBeWrittenIsAnError) {
  // Less than a buffer, and more than a buffer.
  for (const char* command : {"--version", "info"}) {
    const CommandResult result = RunStrataTo("/dev/full", {command});
    EXPECT_EQ(result.code, 2) << command;
    EXPECT_THAT(result.err, HasSubstr("strata: stdout: "));
  }
}

// A flag of the command, and an unknown flag.
TEST_F(CommandLineTest, AFlagFileIsReadAsTheCommandLineIs) {
  const TempFile flags(".flags");
  flags.Write("--format=json\n--allocator_strategy=bfc\n");
  const CommandResult result =
      RunStrata({"replay", "--flagfile=" + flags.path(), small_.path()});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("\"strategy\": \"bfc\""));
  flags.Write("--alocator_strategy=bfc\n");
  ExpectRefused(
      RunStrata({"replay", "--flagfile=" + flags.path(), small_.path()}),
      "alocator_strategy");
}

TEST_F(CommandLineTest, BenchThatMeasuredNothingIsNoSuccess) {
  EXPECT_EQ(RunStrata({"bench", "--bench_allocators=glibc",
                       "--bench_workloads=random_1000000"})
                .code,
            2);
}

// A profile with the name of another malloc would mislead.
TEST_F(CommandLineTest, BenchRunsOnlyTheMallocThatIsThere) {
  ExpectRefused(RunStrata({"bench", "run", "jemalloc", "pair"}),
                "LD_PRELOAD=<path of libjemalloc");
}

}  // namespace
}  // namespace strata::tools
