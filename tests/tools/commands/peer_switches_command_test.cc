// Peers with switches in the list of strategies of `strata replay`.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "strata/tests/tools/command_line_fixture.h"

namespace strata::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PeerSwitchesCommandTest : public CommandLineTest {
 protected:
  CommandResult Replay(const std::string& strategies) const {
    return RunStrata({"replay", small_.path(), "--format=json",
                      "--allocator_strategy=" + strategies});
  }
  std::vector<std::string> Rows(const std::string& strategies) const {
    std::vector<std::string> names;
    for (const auto& row : nlohmann::json::parse(Replay(strategies).out)) {
      names.push_back(row["strategy"]);
    }
    return names;
  }
};

TEST_F(PeerSwitchesCommandTest, SwitchesBelongToThePeerBeforeThem) {
  EXPECT_THAT(
      Rows("direct,peer:pytorch:max_split_size_mb=64,expandable_segments=True,"
           "peer:pytorch,auto_growth,peer:pytorch:roundup_power2_divisions=8,"
           "peer:pytorch:max_split_size_mb=32"),
      ElementsAre("direct",
                  "peer:pytorch:max_split_size_mb=64,expandable_segments=True",
                  "peer:pytorch", "auto_growth",
                  "peer:pytorch:roundup_power2_divisions=8",
                  "peer:pytorch:max_split_size_mb=32"));
}

TEST_F(PeerSwitchesCommandTest, BracketsHoldAList) {
  EXPECT_THAT(
      Rows("peer:pytorch:roundup_power2_divisions=[64:8,256:4,>:1],"
           "max_split_size_mb=64,peer:paddle"),
      ElementsAre("peer:pytorch:roundup_power2_divisions=[64:8,256:4,>:1],"
                  "max_split_size_mb=64",
                  "peer:paddle"));
}

// 3 MiB twice, on two streams: 20 MiB each, or one granule each.
TEST_F(PeerSwitchesCommandTest, SwitchesHaveTheirEffect) {
  const auto json = nlohmann::json::parse(
      Replay("peer:pytorch:expandable_segments=True,peer:pytorch_expandable,"
             "peer:pytorch:max_split_size_mb=64")
          .out);
  EXPECT_GT(json[0]["device_calls"]["create_memory"], 0);
  EXPECT_EQ(json[0]["device_calls"], json[1]["device_calls"]);
  EXPECT_EQ(json[2]["device_calls"]["mem_alloc"], 2);
}

TEST_F(PeerSwitchesCommandTest, WrongSwitchesAreNamed) {
  ExpectRefused(Replay("auto_growth,peer:pytorch:max_split=64"),
                "peer:pytorch: 'max_split' is not a switch (known: "
                "expandable_segments, ");
  ExpectRefused(Replay("peer:pytorch:expandable_segments=True,max_split=64"),
                "'max_split' is not a switch");
  ExpectRefused(Replay("peer:pytorch:max_split_size_mb=20,direct"),
                "'max_split_size_mb=20' is not a number of MiB above 20");
  ExpectRefused(Replay("peer:pytorch:,direct"), "'' is not KEY=VALUE");
  ExpectRefused(Replay("peer:pytorch:roundup_power2_divisions=[64:8,direct"),
                "'roundup_power2_divisions=[64:8,direct' is neither");
}

TEST_F(PeerSwitchesCommandTest, OthersHaveNoSwitches) {
  ExpectRefused(Replay("peer:rmm_pool:max_split_size_mb=64"),
                "peer:rmm_pool has no switches");
  ExpectRefused(Replay("auto_growth,max_split_size_mb=64"),
                "unknown strategy 'max_split_size_mb=64'");
  ExpectRefused(Replay("peer:pytorch,max_split_size_mb=64"),
                "unknown strategy 'max_split_size_mb=64'");
  ExpectRefused(Replay("peer:jemalloc:max_split_size_mb=64"),
                "there is no peer 'peer:jemalloc");
}

TEST_F(PeerSwitchesCommandTest, HelpListsTheSwitches) {
  EXPECT_THAT(RunStrata({"replay", "--help"}).out,
              HasSubstr("peer:pytorch:KEY=VALUE"));
}

}  // namespace
}  // namespace strata::tools
