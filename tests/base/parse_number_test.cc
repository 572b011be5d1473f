#include "strata/base/parse_number.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace strata {
namespace {

TEST(ParseNumberTest, ReadsAWholeText) {
  EXPECT_EQ(ParseNumber<std::uint64_t>("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(ParseNumber<std::int32_t>("-7"), -7);
  EXPECT_EQ(ParseNumber<std::uint64_t>("ff", 16), 255U);
  EXPECT_EQ(ParseNumber<double>("1e3"), 1000.0);
}

TEST(ParseNumberTest, RefusesOtherText) {
  for (const char* text :
       {"", " 1", "1 ", "1x", "x", "0x1", "+1", "-1", "18446744073709551616"}) {
    EXPECT_FALSE(ParseNumber<std::uint64_t>(text)) << text;
  }
  EXPECT_FALSE(ParseNumber<std::uint16_t>("65536"));
  EXPECT_FALSE(ParseNumber<double>("1e3", std::chars_format::fixed));
}

}  // namespace
}  // namespace strata
