// docs/flags.md, and its completeness for the flags of PaddlePaddle.

#include "strata/tools/commands/flag_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "strata/facade/options.h"
#include "strata/tests/tools/command.h"

namespace strata::tools {
namespace {

using ::testing::HasSubstr;

std::map<std::string, OptionInfo> OptionsByName() {
  std::map<std::string, OptionInfo> options;
  for (const OptionInfo& option : OptionTable()) {
    options.emplace(option.name, option);
  }
  return options;
}

TEST(FlagTableTest, TheDocumentIsWhatTheDefinitionsMake) {
  std::ifstream file(STRATA_SOURCE_DIR "/docs/flags.md");
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), FlagsMarkdown())
      << "renew it: strata info --format=flags > docs/flags.md";
}

TEST(FlagTableTest, InfoPrintsTheDocument) {
  const CommandResult result = RunStrata({"info", "--format=flags"});
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.out, FlagsMarkdown());
}

// paddle.md §2 has this many flags; one row may name several.
TEST(FlagTableTest, HasEveryFlagOnce) {
  std::set<std::string> names;
  for (const PaddleFlag& flag : PaddleFlags()) {
    EXPECT_TRUE(names.insert(flag.name).second) << flag.name;
  }
  EXPECT_EQ(names.size(), 61U);
}

TEST(FlagTableTest, EachIsAnOptionOrHasAReason) {
  const auto options = OptionsByName();
  for (const PaddleFlag& flag : PaddleFlags()) {
    const bool has_reason = std::string(flag.why_not) != "";
    EXPECT_NE(options.count(flag.name) != 0, has_reason)
        << flag.name
        << (has_reason ? " is an option: take its reason out of "
                       : " is no option: give the reason in ")
        << "tools/commands/paddle_flags.def";
  }
}

// The default of the original, if it is an option. Only the strategy differs:
// virtual_memory needs less memory.
TEST(FlagTableTest, OptionsHaveTheOriginalsDefault) {
  const auto options = OptionsByName();
  for (const PaddleFlag& flag : PaddleFlags()) {
    const auto found = options.find(flag.name);
    if (found == options.end()) continue;
    if (found->first == "allocator_strategy") continue;
    EXPECT_EQ(found->second.default_value, flag.default_value) << flag.name;
  }
}

TEST(FlagTableTest, EveryFlagIsInTheDocument) {
  const std::string text = FlagsMarkdown();
  for (const OptionInfo& option : OptionTable()) {
    EXPECT_THAT(text, HasSubstr("\n| `--" + std::string(option.name) + "` |"));
  }
  for (const RemovedOption& option : RemovedOptions()) {
    EXPECT_THAT(text, HasSubstr("\n| `--" + std::string(option.name) + "` |"));
  }
  for (const PaddleFlag& flag : PaddleFlags()) {
    EXPECT_THAT(text, HasSubstr("\n| `--" + std::string(flag.name) + "` |"));
  }
}

}  // namespace
}  // namespace strata::tools
