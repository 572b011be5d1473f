// When the strategy pool waits for its streams before it releases a piece to
// the system (cuda_semantics.md M6).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "strata/strategy/pool/pool_allocator.h"
#include "strata/tests/testing/layers/test_place.h"

namespace strata {
namespace {

class PoolWaitsTest : public ::testing::Test {
 protected:
  static TestPlaceOptions AtMostTwoPieces() {
    TestPlaceOptions options;
    options.strategy = "pool";
    options.kind = PlaceKind::kDevice;
    options.progress = "lazy";
    options.strategy_options.Edit<PoolOptions>().pool_size_limit = 2;
    options.strategy_options.Edit<PoolOptions>().pool_auto_resize = false;
    return options;
  }
  AllocationPtr Get(std::size_t bytes) { return chain_->Allocate(bytes); }
  void Touch(std::size_t bytes) { Get(bytes); }

  TestPlace place_{AtMostTwoPieces()};
  TestChain chain_ = place_.AddChain();
};

// Stream B waits for A before it gets memory that A freed. Memory that a stream
// may still use is not released to the system (cuda_semantics.md M3, M6).
TEST_F(PoolWaitsTest, WaitsForItsStreamsBeforeTheSystemGetsAPiece) {
  const TestChain other = place_.AddChain();
  Touch(1000);
  std::vector<DeviceCall> calls;
  place_.device().SetCallObserver([&calls](const CallRecord& call) {
    if (IsEntryPoint(call.call)) calls.push_back(call.call);
  });
  EXPECT_EQ(chain_->Release(), 1000U);
  place_.device().SetCallObserver(nullptr);
  EXPECT_THAT(calls, ::testing::ElementsAre(DeviceCall::kStreamSynchronize,
                                            DeviceCall::kStreamSynchronize,
                                            DeviceCall::kMemFree));
}

// A wait covers the pieces that are free when it begins, and none freed later.
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
  // The third displaces the first. Three pieces were free by then.
  EXPECT_THAT(calls, ::testing::ElementsAre(
                         DeviceCall::kStreamSynchronize, DeviceCall::kMemFree,
                         DeviceCall::kMemFree, DeviceCall::kMemFree,
                         DeviceCall::kStreamSynchronize, DeviceCall::kMemFree));
}

// A reused piece needs a new wait.
TEST_F(PoolWaitsTest, AWaitBeforeAPiecesLastUseDoesNotServeIt) {
  AllocationPtr first = Get(1000);
  AllocationPtr second = Get(1001);
  AllocationPtr third = Get(1002);
  first.reset();
  second.reset();
  third.reset();  // makes a wait, which covers all three
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

// Frees while a stream captures. No wait can cover them.
class PoolCaptureTest : public ::testing::Test {
 protected:
  void Use(std::uint64_t size_limit, bool auto_resize = false,
           std::uint64_t cached_limit_bytes = 0) {
    TestPlaceOptions options;
    options.strategy = "pool";
    options.strategy_options.Edit<PoolOptions>().pool_size_limit = size_limit;
    options.strategy_options.Edit<PoolOptions>().pool_auto_resize = auto_resize;
    options.strategy_options.Edit<PoolOptions>().pool_cached_limit_bytes =
        cached_limit_bytes;
    place_ = std::make_unique<TestPlace>(options);
    chain_ = place_->AddChain();
    // Below the view, which would defer frees.
    pool_ = dynamic_cast<PoolAllocator*>(chain_.strategy->underlying());
    ASSERT_NE(pool_, nullptr);
  }
  AllocationPtr Get(std::size_t bytes) { return pool_->Allocate(bytes); }
  // Frees pieces of 1000 bytes and more, in this order, during a capture.
  void FreeDuringCapture(std::size_t count) {
    std::vector<AllocationPtr> live;
    for (std::size_t i = 0; i < count; ++i) live.push_back(Get(1000 + i));
    BeginCapture();
    for (AllocationPtr& one : live) one.reset();
    EXPECT_EQ(SystemFrees(), 0U);
    EXPECT_EQ(Kept(), count);
    EXPECT_TRUE(pool_->IsConsistent());
  }
  void BeginCapture() {
    place_->timelines()->gate().Announce();
    EXPECT_EQ(place_->device().StreamBeginCapture(chain_.stream(),
                                                  CaptureMode::kThreadLocal),
              Status::kSuccess);
  }
  void EndCapture() {
    Graph graph;
    EXPECT_EQ(place_->device().StreamEndCapture(chain_.stream(), &graph),
              Status::kSuccess);
    EXPECT_EQ(place_->device().GraphDestroy(graph), Status::kSuccess);
    place_->timelines()->gate().Withdraw();
  }
  std::uint64_t SystemFrees() {
    return place_->device().CallCount(DeviceCall::kMemFree);
  }
  std::uint64_t Kept() { return pool_->stats().free_blocks; }
  bool IsKept(std::size_t bytes) {
    Failure failure;
    return pool_->AllocateOrNull(Request{bytes, 0, kNoGrowth}, failure) !=
           nullptr;
  }

  std::unique_ptr<TestPlace> place_;
  TestChain chain_;
  PoolAllocator* pool_ = nullptr;
};

TEST_F(PoolCaptureTest, AHitGoesBackAlthoughTheLimitIsExceeded) {
  Use(2);
  FreeDuringCapture(5);
  EndCapture();
  HitPath& hits = *pool_->hit_path();
  {
    Block* block = hits.Take(1003);
    ASSERT_NE(block, nullptr);
    EXPECT_TRUE(hits.Give(block));
  }
  EXPECT_EQ(Kept(), 5U);
  EXPECT_TRUE(pool_->IsConsistent());
}

// So the limit holds again after the next free that is no hit.
TEST_F(PoolCaptureTest, NoMoreThanWasKeptGoesBackByAHit) {
  Use(2);
  AllocationPtr later = Get(2000);
  FreeDuringCapture(5);
  EndCapture();
  {
    HitPath& hits = *pool_->hit_path();
    EXPECT_FALSE(hits.Give(later->block()));
  }
  later.reset();
  EXPECT_EQ(Kept(), 2U);
  EXPECT_EQ(SystemFrees(), 4U);
}

TEST_F(PoolCaptureTest, ALimitOfNoPiecesHoldsAgainAfterIt) {
  Use(0);
  FreeDuringCapture(2);
  EndCapture();
  Get(2000).reset();
  EXPECT_EQ(Kept(), 0U);
  EXPECT_EQ(SystemFrees(), 3U);
}

TEST_F(PoolCaptureTest, ALimitOfBytesHoldsAgainAfterIt) {
  Use(100, /*auto_resize=*/false, /*cached_limit_bytes=*/1500);
  FreeDuringCapture(3);
  EndCapture();
  Get(500).reset();
  EXPECT_EQ(Kept(), 1U);
  // This piece alone exceeds the limit: others stay instead.
  Get(1501).reset();
  EXPECT_TRUE(IsKept(500));
}

// One failed wait for each free, and the limit does not change.
TEST_F(PoolCaptureTest, WhatStaysIsNoEviction) {
  Use(2, /*auto_resize=*/true);
  FreeDuringCapture(60);
  EXPECT_EQ(pool_->evictions(), 0U);
  EXPECT_EQ(pool_->size_limit(), 2U);
  EndCapture();
  Get(2000).reset();
  EXPECT_EQ(pool_->evictions(), 59U);
  EXPECT_EQ(Kept(), 2U);
}

TEST_F(PoolCaptureTest, TheOldestStillGoFirstAfterIt) {
  Use(2);
  FreeDuringCapture(6);
  EndCapture();
  Get(2000).reset();
  EXPECT_TRUE(IsKept(1005));
  EXPECT_TRUE(IsKept(2000));
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
  // This many failed waits do not cover memory freed meanwhile.
  const WaitRounds::Stamp old = waits.now();
  for (int i = 0; i < 70'000; ++i) waits.Begin();
  EXPECT_FALSE(waits.Covers(old));
  EXPECT_FALSE(waits.Covers(waits.now()));
}

}  // namespace
}  // namespace strata
