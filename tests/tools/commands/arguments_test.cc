#include "strata/tools/commands/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace strata::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

Arguments Make(std::vector<std::string> words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  return Arguments(static_cast<int>(pointers.size()), pointers.data());
}

TEST(ArgumentsTest, TakesEveryFormOfABool) {
  for (const char* yes : {"--fit", "-fit", "--fit=true", "--fit=1"}) {
    Arguments arguments = Make({yes});
    EXPECT_TRUE(arguments.TakeBool("fit", false)) << yes;
    EXPECT_THAT(arguments.rest(), IsEmpty());
  }
  for (const char* no : {"--nofit", "--fit=false", "--fit=no"}) {
    EXPECT_FALSE(Make({no}).TakeBool("fit", true)) << no;
  }
}

TEST(ArgumentsTest, LeavesWhatIsNotItsOwn) {
  Arguments arguments =
      Make({"a", "--fitting", "fit", "-", "---fit", "--fit", "--", "--fit"});
  EXPECT_TRUE(arguments.TakeBool("fit", false));
  EXPECT_THAT(arguments.rest(), ElementsAre("a", "--fitting", "fit", "-",
                                            "---fit", "--", "--fit"));
}

TEST(ArgumentsTest, AbsentArgumentHasItsDefault) {
  Arguments arguments = Make({"x"});
  EXPECT_TRUE(arguments.TakeBool("check", true));
  EXPECT_EQ(arguments.TakeChoice("format", "table", {"table", "json"}),
            "table");
}

TEST(ArgumentsTest, DashesInANameAreUnderscores) {
  Arguments arguments = Make({"--work-ns=a-b", "--fit-all", "x-y"});
  EXPECT_EQ(arguments.TakeText("work_ns"), "a-b");
  EXPECT_TRUE(arguments.TakeBool("fit_all", false));
  EXPECT_THAT(arguments.rest(), ElementsAre("x-y"));
}

TEST(ArgumentsTest, TellsNoValueFromNoArgument) {
  EXPECT_EQ(Make({"--streams="}).TakeText("streams"), "");
  EXPECT_EQ(Make({}).TakeText("streams"), std::nullopt);
}

TEST(ArgumentsTest, HelpHasAShortForm) {
  EXPECT_TRUE(Make({"-h"}).TakeHelp());
  EXPECT_TRUE(Make({"--help"}).TakeHelp());
  EXPECT_FALSE(Make({"help"}).TakeHelp());
}

TEST(ArgumentsTest, LastOneCounts) {
  EXPECT_FALSE(Make({"--fit", "--nofit"}).TakeBool("fit", true));
}

TEST(ArgumentsTest, TakesBothFormsOfAChoice) {
  Arguments one = Make({"--format=json", "x"});
  EXPECT_EQ(one.TakeChoice("format", "table", {"table", "json"}), "json");
  EXPECT_THAT(one.rest(), ElementsAre("x"));
  Arguments two = Make({"--format", "json", "x"});
  EXPECT_EQ(two.TakeChoice("format", "table", {"table", "json"}), "json");
  EXPECT_THAT(two.rest(), ElementsAre("x"));
}

TEST(ArgumentsTest, WrongValuesAreNamed) {
  EXPECT_THAT([] { Make({"--fit=maybe"}).TakeBool("fit", true); },
              ThrowsMessage<std::invalid_argument>(
                  HasSubstr("--fit: 'maybe' is not true or false")));
  EXPECT_THAT(
      [] {
        Make({"--format=xml"}).TakeChoice("format", "a", {"a", "b"});
      },
      ThrowsMessage<std::invalid_argument>(
          HasSubstr("--format: unknown value 'xml' (known: a, b)")));
  EXPECT_THAT([] { Make({"--format"}).TakeChoice("format", "a", {"a"}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("lacks")));
}

}  // namespace
}  // namespace strata::tools
