#include "strata/facade/flags.h"

#include <gflags/gflags.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "strata/tests/testing/scoped_variable.h"

namespace strata {
namespace {

using ::testing::ElementsAre;
using ::testing::ExitedWithCode;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class FlagsTest : public ::testing::Test {
 protected:
  FlagsTest() {
    RegisterFlags();  // the saver restores only registered flags
    saver_.emplace();
  }

 private:
  std::optional<gflags::FlagSaver> saver_;  // restores every flag
};

// gflags::ParseCommandLineFlags would set both.
TEST_F(FlagsTest, TheStateOfGflagsIsNotChanged) {
  const std::string name = gflags::ProgramInvocationName();
  ParseCommandLine(
      {"--strata_sim_seed=1", "--undefok=of_another,one", "--of_another=1"});
  EXPECT_EQ(gflags::ProgramInvocationName(), name);
  std::string value;
  EXPECT_TRUE(gflags::GetCommandLineOption("undefok", &value));
  EXPECT_EQ(value, "");
}

TEST_F(FlagsTest, ToleratedFlagsMayBeNegated) {
  EXPECT_THAT(ParseCommandLine({"--undefok=foo", "--nofoo", "--foo", "one"}),
              ElementsAre("one"));
}

TEST_F(FlagsTest, SyntaxIsThatOfGflags) {
  EXPECT_THAT(ParseCommandLine({"-", "-strata_sim_seed=4", "--strata-stat=no",
                                "--strata_sim_devices", "3"}),
              ElementsAre("-"));
  const Options options = OptionsFromFlags();
  EXPECT_EQ(options.platform.sim_seed, 4U);
  EXPECT_FALSE(options.decorators.stat);
  EXPECT_EQ(options.platform.sim_devices, 3);
}

TEST_F(FlagsTest, HelpThatIsNotWantedIsNotGiven) {
  EXPECT_THAT(ParseCommandLine({"--nohelp", "--version=false", "one"}),
              ElementsAre("one"));
}

TEST_F(FlagsTest, DefaultsAreThoseOfOptions) {
  EXPECT_EQ(ToString(OptionsFromFlags()), ToString(Options()));
}

TEST_F(FlagsTest, EveryOptionIsAFlagWithItsHelp) {
  for (const OptionInfo& option : OptionTable()) {
    gflags::CommandLineFlagInfo info;
    ASSERT_TRUE(gflags::GetCommandLineFlagInfo(option.name, &info))
        << option.name;
    EXPECT_EQ(info.description, option.help);
  }
}

TEST_F(FlagsTest, CommandLineSetsOptionsAndLeavesTheRest) {
  EXPECT_THAT(
      ParseCommandLine({"one", "--strata_sim_memory=3GiB", "two",
                        "--allocator_strategy", "direct", "--nostrata_stat",
                        "--auto_growth_give_back_limit=0.25", "--", "--three"}),
      ElementsAre("one", "two", "--three"));
  const Options options = OptionsFromFlags();
  EXPECT_EQ(options.platform.sim_memory_bytes, std::uint64_t{3} << 30);
  EXPECT_EQ(options.allocator_strategy, "direct");
  EXPECT_FALSE(options.decorators.stat);
  EXPECT_EQ(options.strategy.auto_growth_give_back_limit, 0.25);
}

TEST_F(FlagsTest, EnvironmentIsBelowTheCommandLine) {
  const ScopedVariable memory("FLAGS_strata_sim_memory", "1GiB");
  const ScopedVariable seed("FLAGS_strata_sim_seed", "5");
  const ScopedVariable stat("FLAGS_strata_stat", "false");
  ParseCommandLine({"--strata_sim_seed=1"});  // its default, but given
  const Options options = OptionsFromFlags();
  EXPECT_EQ(options.platform.sim_memory_bytes, std::uint64_t{1} << 30);
  EXPECT_EQ(options.platform.sim_seed, 1U);
  EXPECT_FALSE(options.decorators.stat);
  EXPECT_TRUE(IsFlagSet("strata_sim_memory"));
  EXPECT_TRUE(IsFlagSet("strata_sim_seed"));
  EXPECT_FALSE(IsFlagSet("strata_sim_data"));
}

TEST_F(FlagsTest, WrongEnvironmentVariableIsNamed) {
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{
           {"FLAGS_strata_sim_devices", "two"},
           {"FLAGS_strata_stat", "maybe"},
           {"FLAGS_strata_stat", ""},
           {"FLAGS_strata_sim_memory", "1 parsec"},
           {"FLAGS_gpu_memory_limit_mb", "-1"}}) {
    const gflags::FlagSaver saver;
    const ScopedVariable variable(name, value);
    std::string complaint = "environment variable ";
    complaint.append(name).append(": '").append(value).append("'");
    EXPECT_THAT([] { OptionsFromFlags(); },
                ThrowsMessage<std::invalid_argument>(HasSubstr(complaint)));
  }
}

TEST_F(FlagsTest, NumberOutsideItsOptionIsRefused) {
  ParseCommandLine({"--strata_sim_devices=4294967297"});
  EXPECT_THAT([] { OptionsFromFlags(); },
              ThrowsMessage<std::invalid_argument>(
                  HasSubstr("strata_sim_devices: '4294967297'")));
}

TEST_F(FlagsTest, AliasContradictsOnlyAStrategyThatWasGiven) {
  ParseCommandLine({"--use_system_allocator"});
  EXPECT_EQ(OptionsFromFlags().Strategy(), "direct");
  ParseCommandLine({"--allocator_strategy=auto_growth"});
  EXPECT_THROW(OptionsFromFlags(), std::invalid_argument);
}

TEST_F(FlagsTest, StrategyListGivesOneOptionsEach) {
  ParseCommandLine(
      {"--allocator_strategy=direct,auto_growth", "--strata_sim_seed=9"});
  const std::vector<Options> all = OptionsPerStrategy();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].allocator_strategy, "direct");
  EXPECT_EQ(all[1].allocator_strategy, "auto_growth");
  EXPECT_EQ(all[1].platform.sim_seed, 9U);
  EXPECT_THROW(OptionsFromFlags(), std::invalid_argument);
}

TEST_F(FlagsTest, EmptyNameInAStrategyListIsRefused) {
  ParseCommandLine({"--allocator_strategy=direct,"});
  EXPECT_THROW(OptionsPerStrategy(), std::invalid_argument);
}

using FlagsDeathTest = FlagsTest;

TEST_F(FlagsDeathTest, UnknownFlagExitsWithTwo) {
  EXPECT_EXIT(ParseCommandLine({"--no_such_flag"}), ExitedWithCode(2),
              "unknown command line flag 'no_such_flag'");
}

// On stdout: the output of the death test is its stderr.
TEST_F(FlagsDeathTest, HelpNamesEveryOption) {
  EXPECT_EXIT(
      {
        dup2(STDERR_FILENO, STDOUT_FILENO);
        ParseCommandLine({"one", "--help"});
      },
      ExitedWithCode(0), "--allocator_strategy \\(String, default 'auto'");
}

TEST_F(FlagsDeathTest, OtherReportsThanHelpExitWithTwo) {
  EXPECT_EXIT(ParseCommandLine({"--version"}), ExitedWithCode(2),
              "--version: there is only --help");
  EXPECT_EXIT(ParseCommandLine({"--helpon=x"}), ExitedWithCode(2), "--helpon");
}

TEST_F(FlagsDeathTest, FlagFileThatCannotBeReadExitsWithTwo) {
  EXPECT_EXIT(ParseCommandLine({"--flagfile=/nonexistent"}), ExitedWithCode(2),
              "--flagfile=/nonexistent: No such file");
}

TEST_F(FlagsDeathTest, ValuesThatLackOrDoNotFitExitWithTwo) {
  EXPECT_EXIT(ParseCommandLine({"--strata_sim_seed"}), ExitedWithCode(2),
              "flag 'strata_sim_seed' is missing its argument");
  EXPECT_EXIT(ParseCommandLine({"--nostrata_sim_seed"}), ExitedWithCode(2),
              "boolean value .nostrata_sim_seed. specified for uint64");
  EXPECT_EXIT(ParseCommandLine({"--help=perhaps"}), ExitedWithCode(2),
              "illegal value 'perhaps' specified for bool flag 'help'");
}

TEST_F(FlagsDeathTest, WrongValueExitsWithTwo) {
  EXPECT_EXIT(ParseCommandLine({"--strata_sim_seed=-3"}), ExitedWithCode(2),
              "strata_sim_seed");
}

}  // namespace
}  // namespace strata
