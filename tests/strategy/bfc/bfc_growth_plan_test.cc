// tf_bfc.md R15 to R19, R22, R23, W4 to W6: the numbers, without memory.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "strata/base/size.h"
#include "strata/strategy/bfc/arena/geometry.h"
#include "strata/strategy/bfc/growth_plan.h"

namespace strata {
namespace {

using ::testing::ElementsAre;

BfcGrowthPlan Plan(std::size_t limit_bytes, bool allow_growth = true) {
  BfcGrowthPlan plan;
  plan.Start(limit_bytes, allow_growth ? Mebibytes(2) : limit_bytes);
  return plan;
}

TEST(BfcGrowthPlanTest, StartsWithTwoMebibytesOrTheWholeLimit) {  // R15
  EXPECT_EQ(Plan(Gibibytes(1)).hint_bytes(), Mebibytes(2));
  EXPECT_EQ(Plan(Mebibytes(1) + 1).hint_bytes(), Mebibytes(1) + 256);
  EXPECT_EQ(Plan(Gibibytes(1), false).hint_bytes(), Gibibytes(1));
  EXPECT_EQ(Plan(Mebibytes(5) + 1, false).hint_bytes(), Mebibytes(5) + 256);
}

TEST(BfcGrowthPlanTest, TheLimitLeavesWholeGranules) {  // R16
  BfcGrowthPlan plan = Plan(Mebibytes(1) + 100);
  EXPECT_EQ(plan.Available(0), Mebibytes(1));
  EXPECT_EQ(plan.Available(Mebibytes(1)), 0U);
  EXPECT_EQ(plan.FirstAsk(Mebibytes(1) + 256, 0), std::nullopt);
  EXPECT_EQ(plan.FirstAsk(Mebibytes(1), 0), Mebibytes(1));
}

TEST(BfcGrowthPlanTest, AvailableDoesNotWrapBelowZero) {  // W6
  const BfcGrowthPlan plan = Plan(Mebibytes(3));
  EXPECT_EQ(plan.Available(Mebibytes(4)), 0U);
}

TEST(BfcGrowthPlanTest, ALargeRequestRaisesTheHintOnce) {  // R17, R19
  BfcGrowthPlan plan = Plan(Gibibytes(1));
  EXPECT_EQ(plan.FirstAsk(Mebibytes(100), 0), Mebibytes(128));
  plan.Grown();
  EXPECT_EQ(plan.hint_bytes(), Mebibytes(128));
  EXPECT_EQ(plan.FirstAsk(Mebibytes(100), Mebibytes(128)), Mebibytes(128));
  plan.Grown();
  EXPECT_EQ(plan.hint_bytes(), Mebibytes(256));
}

TEST(BfcGrowthPlanTest, ARefusedRegionLeavesTheHint) {  // R19
  BfcGrowthPlan plan = Plan(Gibibytes(1));
  plan.FirstAsk(256, 0);
  EXPECT_EQ(plan.hint_bytes(), Mebibytes(2));
}

TEST(BfcGrowthPlanTest, WhatIsGivenBackTakesTheHintBack) {
  BfcGrowthPlan plan = Plan(Gibibytes(1));
  for (std::size_t held = 0; held < Mebibytes(30);) {
    held += *plan.FirstAsk(256, held);
    plan.Grown();
  }
  EXPECT_EQ(plan.hint_bytes(), Mebibytes(32));
  plan.GaveBack(Mebibytes(30));  // as many as lead to it
  EXPECT_EQ(plan.hint_bytes(), Mebibytes(32));
  plan.GaveBack(Mebibytes(14));
  EXPECT_EQ(plan.hint_bytes(), Mebibytes(16));
  plan.GaveBack(Mebibytes(5));
  EXPECT_EQ(plan.hint_bytes(), Mebibytes(4));
  plan.GaveBack(0);
  EXPECT_EQ(plan.hint_bytes(), Mebibytes(2));
}

TEST(BfcGrowthPlanTest, WithoutGrowthTheHintStaysTheLimit) {
  BfcGrowthPlan plan = Plan(Gibibytes(1), false);
  plan.FirstAsk(256, 0);
  plan.Grown();
  plan.GaveBack(0);
  EXPECT_EQ(plan.FirstAsk(256, 0), Gibibytes(1));
}

TEST(BfcGrowthPlanTest, ATenthLessInSinglePrecision) {  // R18, R23
  std::vector<std::size_t> asked;
  for (std::size_t bytes = Gibibytes(1); asked.size() < 7;
       bytes = BfcGrowthPlan::Less(bytes)) {
    asked.push_back(bytes);
  }
  EXPECT_THAT(asked, ElementsAre(1073741824, 966367744, 869731072, 782758144,
                                 704482304, 634034176, 570630912));
}

TEST(BfcGrowthPlanTest, AskingForLessAlwaysEnds) {  // W4
  for (std::size_t bytes = 256; bytes <= 4096; bytes += 256) {
    EXPECT_LT(BfcGrowthPlan::Less(bytes), bytes);
  }
  EXPECT_EQ(BfcGrowthPlan::Less(2304), 2048U + 256U - 256U);
  EXPECT_EQ(BfcGrowthPlan::Less(256), 0U);
  for (int bits = 12; bits < 48; ++bits) {
    const std::size_t bytes = std::size_t{1} << bits;
    EXPECT_LT(BfcGrowthPlan::Less(bytes), bytes);
  }
}

TEST(BfcGrowthPlanTest, TheHintNeverWraps) {  // W5
  for (const std::size_t limit : {std::size_t{100}, Mebibytes(16), Gibibytes(1),
                                  kBfcMaxBytes, SIZE_MAX}) {
    BfcGrowthPlan plan = Plan(limit);
    for (int i = 0; i < 200; ++i) {
      plan.FirstAsk(256, 0);
      plan.Grown();
    }
    EXPECT_GE(plan.hint_bytes(), kBfcGranuleBytes);
    EXPECT_LE(plan.hint_bytes() / 4,
              std::max(plan.limit_bytes(), kBfcGranuleBytes));
    EXPECT_LE(plan.limit_bytes(), kBfcMaxBytes);
  }
}

}  // namespace
}  // namespace strata
