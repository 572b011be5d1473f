#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <stdexcept>
#include <string>

#include "strata/strategy/bfc/options.h"

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Error(const std::function<void(StrategyOptions&)>& change) {
  StrategyOptions options;
  change(options);
  try {
    ReadBfcOptions(options);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(BfcOptionsTest, DefaultsAreThoseOfTheOriginal) {  // R62
  const BfcOptions bfc = ReadBfcOptions(StrategyOptions());
  EXPECT_TRUE(bfc.allow_growth);
  EXPECT_TRUE(bfc.garbage_collection);
  EXPECT_FALSE(bfc.coalesce_regions);
  EXPECT_EQ(bfc.fragmentation_fraction, 0);
  EXPECT_EQ(bfc.placement, BfcPlacement::kCompat);
  EXPECT_EQ(bfc.backpedal, BfcBackpedal::kAlways);
  EXPECT_EQ(bfc.memory_limit_bytes, 0U);
  EXPECT_EQ(bfc.counter, nullptr);
  EXPECT_FALSE(bfc.keep_annotations);
}

TEST(BfcOptionsTest, EveryOptionArrives) {
  StrategyOptions options;
  options.bfc_allow_growth = false;
  options.bfc_garbage_collection = false;
  options.bfc_coalesce_regions = true;
  options.bfc_fragmentation_fraction = 0.5;
  options.bfc_backpedal = "once";
  options.bfc_memory_limit_bytes = 4711;
  options.bfc_timestamps = true;
  options.bfc_keep_annotations = true;
  const BfcOptions bfc = ReadBfcOptions(options);
  EXPECT_FALSE(bfc.allow_growth);
  EXPECT_FALSE(bfc.garbage_collection);
  EXPECT_TRUE(bfc.coalesce_regions);
  EXPECT_EQ(bfc.fragmentation_fraction, 0.5);
  EXPECT_EQ(bfc.backpedal, BfcBackpedal::kOnce);
  EXPECT_EQ(bfc.memory_limit_bytes, 4711U);
  EXPECT_NE(bfc.counter, nullptr);
  EXPECT_TRUE(bfc.keep_annotations);
  options.bfc_timestamps = false;
  options.bfc_placement = "fast";
  EXPECT_EQ(ReadBfcOptions(options).placement, BfcPlacement::kFast);
}

TEST(BfcOptionsTest, WrongValuesNameTheOption) {
  EXPECT_THAT(Error([](StrategyOptions& o) { o.bfc_placement = "best"; }),
              AllOf(HasSubstr("bfc_placement"), HasSubstr("compat, fast")));
  EXPECT_THAT(Error([](StrategyOptions& o) { o.bfc_backpedal = "never"; }),
              AllOf(HasSubstr("bfc_backpedal"), HasSubstr("always, once")));
  for (const double fraction :
       {-0.1, 1.1, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THAT(Error([fraction](StrategyOptions& o) {
                  o.bfc_fragmentation_fraction = fraction;
                }),
                HasSubstr("bfc_fragmentation_fraction"));
  }
}

TEST(BfcOptionsTest, WhatContradictsEachOtherIsNamedTogether) {
  EXPECT_THAT(Error([](StrategyOptions& o) {
                o.bfc_placement = "fast";
                o.bfc_timestamps = true;
              }),
              AllOf(HasSubstr("bfc_timestamps"), HasSubstr("bfc_placement")));
}

}  // namespace
}  // namespace strata
