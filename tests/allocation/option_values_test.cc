#include "strata/allocation/option_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace strata {
namespace {

using ::testing::HasSubstr;

const std::vector<RegisteredOption>& Table() {
  static const auto* const table = new std::vector<RegisteredOption>{
      {"most_bytes", "Bytes", "1GiB", ""}, {"most_live", "Uint64", "7", ""},
      {"warn", "Bool", "false", ""},       {"ratio", "Double", "0.5", ""},
      {"label", "String", "", ""},
  };
  return *table;
}

TEST(OptionValuesTest, HasTheDefaultsOfTheTable) {
  const OptionValues values(Table(), "");
  EXPECT_EQ(values.Get<std::uint64_t>("most_bytes"), std::uint64_t{1} << 30);
  EXPECT_EQ(values.Get<std::uint64_t>("most_live"), 7U);
  EXPECT_FALSE(values.Get<bool>("warn"));
  EXPECT_EQ(values.Get<double>("ratio"), 0.5);
  EXPECT_EQ(values.Get<std::string>("label"), "");
}

TEST(OptionValuesTest, TakesWhatTheTextSets) {
  const OptionValues values(Table(),
                            "most_bytes=2MiB:warn:ratio=1.25:label=a=b");
  EXPECT_EQ(values.Get<std::uint64_t>("most_bytes"), std::uint64_t{2} << 20);
  EXPECT_EQ(values.Get<std::uint64_t>("most_live"), 7U);
  EXPECT_TRUE(values.Get<bool>("warn"));
  EXPECT_EQ(values.Get<double>("ratio"), 1.25);
  EXPECT_EQ(values.Get<std::string>("label"), "a=b");
}

std::string Error(const std::string& text) {
  try {
    const OptionValues values(Table(), text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "none";
}

TEST(OptionValuesTest, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(Error("most=1"),
              HasSubstr("unknown option 'most' (known: most_bytes, most_live"));
  EXPECT_EQ(Error("most_live=many"),
            "most_live: 'many' is not a value of type Uint64");
  EXPECT_EQ(Error("most_live"), "most_live: '' is not a value of type Uint64");
  EXPECT_EQ(Error("warn=maybe"), "warn: 'maybe' is not a value of type Bool");
  EXPECT_EQ(Error("most_bytes=1X"),
            "most_bytes: '1X' is not a value of type Bytes");
}

TEST(OptionValuesTest, RefusesAnOptionThatIsSetTwice) {
  EXPECT_EQ(Error("most_bytes=1MiB:most_live=1:most_bytes=1GiB"),
            "'most_bytes' is set twice");
  EXPECT_EQ(Error("warn:warn"), "'warn' is set twice");
}

TEST(OptionValuesTest, AnotherNameOrTypeIsAFaultOfTheProgram) {
  const OptionValues values(Table(), "");
  EXPECT_THROW(values.Get<bool>("most_live"), std::logic_error);
  EXPECT_THROW(values.Get<bool>("other"), std::logic_error);
}

}  // namespace
}  // namespace strata
