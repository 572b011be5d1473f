// When the strategy pool waits for its streams before the system gets a piece
// (cuda_semantics.md M6).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "strata/strategy/wait_rounds.h"
#include "strata/tests/testing/test_place.h"

namespace strata {
namespace {

class PoolWaitsTest : public ::testing::Test {
 protected:
  static TestPlaceOptions AtMostTwoPieces() {
    TestPlaceOptions options;
    options.strategy = "pool";
    options.kind = PlaceKind::kDevice;
    options.progress = "lazy";
    options.strategy_options.pool_size_limit = 2;
    options.strategy_options.pool_auto_resize = false;
    return options;
  }
  AllocationPtr Get(std::size_t bytes) { return chain_->Allocate(bytes); }
  void Touch(std::size_t bytes) { Get(bytes); }

  TestPlace place_{AtMostTwoPieces()};
  TestChain chain_ = place_.AddChain();
};

// What was free when a wait began has been waited for; what came later has not.
TEST_F(PoolWaitsTest, OneWaitServesAllThatWasFreeThen) {
  std::vector<AllocationPtr> live;
  for (std::size_t i = 0; i < 6; ++i) live.push_back(Get(1000 + i));
  std::vector<DeviceCall> calls;
  place_.device().SetCallObserver([&calls](const CallRecord& call) {
    if (call.call == DeviceCall::kStreamSynchronize ||
        call.call == DeviceCall::kMemFree) {
      calls.push_back(call.call);
    }
  });
  for (AllocationPtr& one : live) one.reset();
  place_.device().SetCallObserver(nullptr);
  // The third displaces the first, and three were free by then.
  EXPECT_THAT(calls, ::testing::ElementsAre(
                         DeviceCall::kStreamSynchronize, DeviceCall::kMemFree,
                         DeviceCall::kMemFree, DeviceCall::kMemFree,
                         DeviceCall::kStreamSynchronize, DeviceCall::kMemFree));
}

// A piece that is used again is as new.
TEST_F(PoolWaitsTest, AWaitBeforeAPiecesLastUseDoesNotServeIt) {
  AllocationPtr first = Get(1000);
  AllocationPtr second = Get(1001);
  AllocationPtr third = Get(1002);
  first.reset();
  second.reset();
  third.reset();  // a wait, which covers all three
  Touch(1001);
  const auto waits = [this] {
    return place_.device().CallCount(DeviceCall::kStreamSynchronize);
  };
  const std::uint64_t before = waits();
  Touch(1003);  // displaces the third
  EXPECT_EQ(waits(), before);
  Touch(1004);  // displaces the second
  EXPECT_EQ(waits(), before + 1);
}

TEST(WaitRoundsTest, CoversWhatWasFreedBeforeAWaitThatEnded) {
  WaitRounds waits;
  const WaitRounds::Stamp before = waits.now();
  EXPECT_FALSE(waits.Covers(before));
  const std::uint64_t wait = waits.Begin();
  const WaitRounds::Stamp during = waits.now();
  EXPECT_FALSE(waits.Covers(before));
  waits.End(wait);
  EXPECT_TRUE(waits.Covers(before));
  EXPECT_FALSE(waits.Covers(during));
}

TEST(WaitRoundsTest, AWaitThatFailedCoversNothing) {
  WaitRounds waits;
  const WaitRounds::Stamp before = waits.now();
  waits.Begin();
  EXPECT_FALSE(waits.Covers(before));
  waits.End(waits.Begin());
  EXPECT_TRUE(waits.Covers(before));
}

TEST(WaitRoundsTest, AnEarlierWaitThatEndsLateTakesNothingBack) {
  WaitRounds waits;
  const std::uint64_t first = waits.Begin();
  const WaitRounds::Stamp between = waits.now();
  waits.End(waits.Begin());
  waits.End(first);
  EXPECT_TRUE(waits.Covers(between));
}

TEST(WaitRoundsTest, StampsThatRunOutAreNeverCoveredTooEarly) {
  WaitRounds waits;
  for (int i = 0; i < 200'000; ++i) {
    const WaitRounds::Stamp before = waits.now();
    const std::uint64_t wait = waits.Begin();
    ASSERT_FALSE(waits.Covers(waits.now()));
    waits.End(wait);
    ASSERT_TRUE(waits.Covers(before));
    ASSERT_FALSE(waits.Covers(waits.now()));
  }
  // So many failed ones say nothing about what was freed meanwhile.
  const WaitRounds::Stamp old = waits.now();
  for (int i = 0; i < 70'000; ++i) waits.Begin();
  EXPECT_FALSE(waits.Covers(old));
  EXPECT_FALSE(waits.Covers(waits.now()));
}

}  // namespace
}  // namespace strata
