// `strata info` on the command line.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "strata/platform/biased_lock/process_barrier.h"
#include "strata/platform/host/processor.h"
#include "strata/strategy/registry.h"
#include "strata/tests/tools/command_line_fixture.h"

namespace strata::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(CommandLineTest, InfoListsWhatTheBuildHas) {
  const CommandResult result =
      RunStrata({"info", "--format=json", "--strata_platform=sim",
                 "--strata_aligned=0", "--strata_sim_devices=2",
                 "--allocator_strategy=direct", "--strata_stream_lock=word"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.err, IsEmpty());
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["stream_lock"], "word");
  EXPECT_EQ(json["devices"].size(), 2U);
  EXPECT_EQ(json["devices"][0]["total_bytes"], std::uint64_t{80} << 30);
  EXPECT_EQ(json["devices"][0]["caps"]["simulated"], true);
  std::vector<std::string> strategies = StrategyNames();
  strategies.emplace_back("auto");
  EXPECT_EQ(json["strategies"], nlohmann::json(strategies));
  EXPECT_THAT(json["flags"].dump(), HasSubstr("strata_sim_memory"));
  const std::string chain = json["chains"]["device:1"].dump();
  EXPECT_THAT(chain, StartsWith("[\"front\",\"stat\""));
  EXPECT_THAT(chain, HasSubstr("direct"));
  EXPECT_THAT(chain, Not(HasSubstr("aligned")));
}

TEST_F(CommandLineTest, InfoSaysWhichStrategyAutoIsAndWhy) {
  const CommandResult table = RunStrata({"info", "--strata_platform=sim"});
  EXPECT_THAT(table.out,
              HasSubstr("    --allocator_strategy=auto is virtual_memory: the "
                        "device is simulated\n"));
  const CommandResult other =
      RunStrata({"info", "--strata_platform=sim", "--allocator_strategy=bfc"});
  EXPECT_THAT(other.out, HasSubstr("    --allocator_strategy=auto would be "
                                   "virtual_memory: the device is simulated"));
  const CommandResult result =
      RunStrata({"info", "--strata_platform=sim", "--format=json",
                 "--allocator_strategy=auto", "--strata_ipc=legacy"});
  const auto json = nlohmann::json::parse(result.out);
  const auto choice = json["devices"][0]["auto_strategy"];
  EXPECT_EQ(choice["name"], "auto_growth");
  EXPECT_THAT(choice["why"].get<std::string>(),
              StartsWith("--strata_ipc=legacy"));
  EXPECT_THAT(json["chains"]["device:0"].dump(), HasSubstr("auto_growth"));
}

TEST_F(CommandLineTest, InfoSaysWhichLockAStreamHas) {
  const auto lock_of = [](const std::string& option) {
    const CommandResult result =
        RunStrata({"info", "--strata_platform=sim", option});
    const std::string before = "lock of a stream: ";
    const std::size_t start = result.out.find(before);
    if (start == std::string::npos) return result.out + result.err;
    const std::size_t from = start + before.size();
    return result.out.substr(from, result.out.find('\n', from) - from);
  };
  const bool can_own = ProcessBarrier::Instance().is_available();
  const std::string biased = can_own ? "biased" : "word";
  EXPECT_EQ(lock_of("--strata_stream_lock=word"), "word");
  EXPECT_EQ(lock_of("--strata_stream_lock=biased"), biased);
  EXPECT_EQ(lock_of("--strata_stream_lock=auto"),
            IsFasterWithOwnedLocks() ? biased : "word");
}

TEST_F(CommandLineTest, InfoSaysWhichPlatformsCannotBeUsedHere) {
  const CommandResult result =
      RunStrata({"info", "--format=json", "--strata_platform=sim"});
  const auto json = nlohmann::json::parse(result.out);
  for (const auto& [name, problem] : json["platform_problems"].items()) {
    EXPECT_THAT(problem.get<std::string>(),
                StartsWith("strata_platform: " + name + ": "));
  }
  EXPECT_FALSE(json["platform_problems"].contains("sim"));
}

TEST_F(CommandLineTest, InfoForPeopleExplainsEveryFlag) {
  const CommandResult result = RunStrata({"info", "--strata_platform=sim"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, HasSubstr("--auto_growth_chunk_rule"));
  EXPECT_THAT(result.out, HasSubstr("front > stat"));
  EXPECT_THAT(result.out, HasSubstr("sim:0"));
  ExpectRefused(RunStrata({"info", "extra"}), "unexpected argument 'extra'");
}

}  // namespace
}  // namespace strata::tools
