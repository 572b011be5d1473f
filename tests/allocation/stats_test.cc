#include "strata/allocation/stats.h"

#include <gtest/gtest.h>

#include <string>

namespace strata {
namespace {

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

// Every field takes part: a new one must be added to the table in stats.cc.
TEST(StatsTest, EveryFieldIsInTheJson) {
  Stats stats;
  auto* fields = reinterpret_cast<std::uint64_t*>(&stats);
  constexpr std::size_t kFields = sizeof(Stats) / sizeof(std::uint64_t);
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
