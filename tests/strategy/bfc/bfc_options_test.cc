#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>

#include "strata/strategy/bfc/options.h"
#include "strata/tests/testing/layers/pool_place.h"

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
  options.Edit<BfcFlags>().bfc_allow_growth = false;
  options.Edit<BfcFlags>().bfc_garbage_collection = false;
  options.Edit<BfcFlags>().bfc_coalesce_regions = true;
  options.Edit<BfcFlags>().bfc_fragmentation_fraction = 0.5;
  options.Edit<BfcFlags>().bfc_backpedal = "once";
  options.Edit<BfcFlags>().bfc_memory_limit_bytes = 4711;
  options.Edit<BfcFlags>().bfc_timestamps = true;
  options.Edit<BfcFlags>().bfc_keep_annotations = true;
  const BfcOptions bfc = ReadBfcOptions(options);
  EXPECT_FALSE(bfc.allow_growth);
  EXPECT_FALSE(bfc.garbage_collection);
  EXPECT_TRUE(bfc.coalesce_regions);
  EXPECT_EQ(bfc.fragmentation_fraction, 0.5);
  EXPECT_EQ(bfc.backpedal, BfcBackpedal::kOnce);
  EXPECT_EQ(bfc.memory_limit_bytes, 4711U);
  EXPECT_NE(bfc.counter, nullptr);
  EXPECT_TRUE(bfc.keep_annotations);
  options.Edit<BfcFlags>().bfc_timestamps = false;
  options.Edit<BfcFlags>().bfc_placement = "fast";
  EXPECT_EQ(ReadBfcOptions(options).placement, BfcPlacement::kFast);
}

TEST(BfcOptionsTest, WrongValuesNameTheOption) {
  EXPECT_THAT(Error([](StrategyOptions& o) {
                o.Edit<BfcFlags>().bfc_placement = "best";
              }),
              AllOf(HasSubstr("bfc_placement"), HasSubstr("compat, fast")));
  EXPECT_THAT(Error([](StrategyOptions& o) {
                o.Edit<BfcFlags>().bfc_backpedal = "never";
              }),
              AllOf(HasSubstr("bfc_backpedal"), HasSubstr("always, once")));
  for (const double fraction :
       {-0.1, 1.1, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THAT(Error([fraction](StrategyOptions& o) {
                  o.Edit<BfcFlags>().bfc_fragmentation_fraction = fraction;
                }),
                HasSubstr("bfc_fragmentation_fraction"));
  }
}

TEST(BfcOptionsTest, WhatContradictsEachOtherIsNamedTogether) {
  EXPECT_THAT(Error([](StrategyOptions& o) {
                o.Edit<BfcFlags>().bfc_placement = "fast";
                o.Edit<BfcFlags>().bfc_timestamps = true;
              }),
              AllOf(HasSubstr("bfc_timestamps"), HasSubstr("bfc_placement")));
}

TEST(BfcOptionsTest, EveryEndHasItsPolicy) {  // R66
  StrategyOptions options;
  options.Edit<BfcFlags>().bfc_two_ended = true;
  options.Edit<BfcFlags>().bfc_lower_end = "descending";
  options.Edit<BfcFlags>().bfc_upper_end = "ascending-exact";
  const BfcOptions bfc = ReadBfcOptions(options);
  EXPECT_TRUE(bfc.has_two_ends);
  EXPECT_FALSE(bfc.allow_growth);
  EXPECT_EQ(bfc.lower.hole_order, OrderedIndex::AddressOrder::kDescending);
  EXPECT_FALSE(bfc.lower.splits_exactly);
  EXPECT_EQ(bfc.upper.hole_order, OrderedIndex::AddressOrder::kAscending);
  EXPECT_TRUE(bfc.upper.splits_exactly);
  EXPECT_THAT(Error([](StrategyOptions& o) {
                o.Edit<BfcFlags>().bfc_upper_end = "-exact";
              }),
              HasSubstr("bfc_upper_end"));
  EXPECT_THAT(Error([](StrategyOptions& o) {
                o.Edit<BfcFlags>().bfc_placement = "fast";
                o.Edit<BfcFlags>().bfc_lower_end = "descending-exact";
              }),
              AllOf(HasSubstr("bfc_lower_end"), HasSubstr("bfc_placement")));
}

TEST(BfcOptionsTest, TwoOptionsThatSetTheLimitContradictEachOther) {
  EXPECT_THAT(
      Error([](StrategyOptions& o) {
        o.Edit<BfcFlags>().bfc_memory_limit_bytes = 1;
        o.Edit<BfcFlags>().bfc_memory_fraction = "0.5";
      }),
      AllOf(HasSubstr("bfc_memory_limit"), HasSubstr("bfc_memory_fraction")));
  EXPECT_THAT(Error([](StrategyOptions& o) {
                o.Edit<BfcFlags>().bfc_memory_limit_bytes = 1;
                o.Edit<BfcFlags>().bfc_system_memory_in_mb = 1;
              }),
              AllOf(HasSubstr("bfc_memory_limit"),
                    HasSubstr("bfc_system_memory_in_mb")));
}

TEST(BfcOptionsTest, ADeviceDecidesOnTheLimit) {  // R59 to R61
  const PoolPlace place;
  StrategyOptions options;
  EXPECT_EQ(
      ReadBfcOptions(options, &place.device(), /*is_managed=*/false).limit_of,
      nullptr);
  options.Edit<BfcFlags>().bfc_memory_fraction = "0.25-0.5";
  EXPECT_EQ(ReadBfcOptions(options, nullptr, /*is_managed=*/false).limit_of,
            nullptr);
  const BfcOptions bfc =
      ReadBfcOptions(options, &place.device(), /*is_managed=*/false);
  ASSERT_NE(bfc.limit_of, nullptr);
  const BfcMemoryLimit limit = bfc.limit_of(Mebibytes(100), Mebibytes(200));
  EXPECT_EQ(limit.start_bytes, Mebibytes(50));
  EXPECT_EQ(limit.most_bytes, Mebibytes(100));
  EXPECT_EQ(place.DeviceCalls(), 0U);
}

TEST(BfcOptionsTest, SinksAreMadeIfAskedFor) {  // R44, R55
  StrategyOptions options;
  EXPECT_EQ(ReadBfcOptions(options).memory_map_sink, nullptr);
  options.Edit<BfcFlags>().bfc_memory_log_lines = 10;
  EXPECT_NE(ReadBfcOptions(options).memory_map_sink, nullptr);
  options.Edit<BfcFlags>().bfc_memory_log_lines = 0;
  options.Edit<BfcFlags>().bfc_memory_map_prefix = TemporaryPath("bfc_options");
  const BfcOptions bfc = ReadBfcOptions(options);
  ASSERT_NE(bfc.memory_map_sink, nullptr);
  BfcSnapshot snapshot;
  snapshot.allocator_name = "bfc";
  bfc.memory_map_sink(snapshot);
  const std::string path =
      options.Edit<BfcFlags>().bfc_memory_map_prefix + "_" + "host_bfc.0";
  EXPECT_TRUE(std::filesystem::remove(path)) << path;
}

}  // namespace
}  // namespace strata
