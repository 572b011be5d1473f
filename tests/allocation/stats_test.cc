#include "strata/allocation/stats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace strata {
namespace {

using testing::HasSubstr;

TEST(StatsTest, AccumulateAddsSumsAndTakesTheLargerBlock) {
  Stats a;
  a.allocations = 3;
  a.in_use_bytes = 100;
  a.peak_in_use_bytes = 150;
  a.chunks = 1;
  a.limit_bytes = 1000;
  a.largest_free_bytes = 50;
  Stats b = a;
  b.largest_free_bytes = 20;
  Accumulate(a, b);
  EXPECT_EQ(a.allocations, 6U);
  EXPECT_EQ(a.in_use_bytes, 200U);
  EXPECT_EQ(a.peak_in_use_bytes, 300U);
  EXPECT_EQ(a.chunks, 2U);
  EXPECT_EQ(a.limit_bytes, 1000U);
  EXPECT_EQ(a.largest_free_bytes, 50U);
}

TEST(StatsTest, TheSumOfTwoPeaksIsABound) {
  Stats sum;
  Stats chain;
  chain.peak_in_use_bytes = 100;
  Accumulate(sum, chain);
  Accumulate(sum, Stats());
  EXPECT_FALSE(sum.peak_in_use_is_bound);
  Accumulate(sum, chain);
  EXPECT_TRUE(sum.peak_in_use_is_bound);
  Stats more;
  Accumulate(more, sum);
  EXPECT_TRUE(more.peak_in_use_is_bound);
  EXPECT_THAT(ToJson(more), HasSubstr("\"peak_in_use_is_bound\":true"));
  EXPECT_THAT(ToJson(chain), HasSubstr("\"peak_in_use_is_bound\":false"));
}

TEST(StatsTest, TheSmallerLimitHolds) {
  EXPECT_EQ(SmallerLimit(0, 0), 0U);
  EXPECT_EQ(SmallerLimit(7, 0), 7U);
  EXPECT_EQ(SmallerLimit(0, 7), 7U);
  EXPECT_EQ(SmallerLimit(9, 7), 7U);
}

// Checks every field: add new fields to the table in stats.cc.
TEST(StatsTest, EveryFieldIsInTheJson) {
  Stats stats;
  auto* fields = reinterpret_cast<std::uint64_t*>(&stats);
  constexpr std::size_t kFields =
      offsetof(Stats, peak_in_use_is_bound) / sizeof(std::uint64_t);
  static_assert(sizeof(Stats) == (kFields + 2) * sizeof(std::uint64_t));
  for (std::size_t i = 0; i < kFields; ++i) fields[i] = 1000 + i;
  const std::string json = ToJson(stats);
  for (std::size_t i = 0; i < kFields; ++i) {
    EXPECT_NE(json.find(std::to_string(1000 + i)), std::string::npos)
        << "field " << i << " in " << json;
  }
  EXPECT_EQ(json.front(), '{');
  EXPECT_EQ(json.back(), '}');
}

}  // namespace
}  // namespace strata
