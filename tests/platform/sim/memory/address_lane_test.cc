#include "strata/platform/sim/memory/address_lane.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace strata::sim {
namespace {

constexpr std::uint64_t kBegin = std::uint64_t{1} << 40;

TEST(AddressLaneTest, AddressesRiseAndAreNotUsedAgainAtOnce) {
  AddressLane lane(kBegin, 1 << 20);
  const auto first = lane.Take(512, 512);
  ASSERT_EQ(first, kBegin);
  lane.Give(*first, 512);
  EXPECT_EQ(lane.Take(512, 512), kBegin + 512);
}

TEST(AddressLaneTest, AlignmentLeavesAGapThatSmallerRequestsFindLater) {
  AddressLane lane(kBegin, 4096);
  ASSERT_EQ(lane.Take(512, 512), kBegin);
  ASSERT_EQ(lane.Take(2048, 2048), kBegin + 2048);
  EXPECT_EQ(lane.Take(1536, 512), kBegin + 512);
  EXPECT_FALSE(lane.Take(512, 512));
}

TEST(AddressLaneTest, WrapsAroundWhenTheEndIsReached) {
  const std::uint64_t ranges = 2 * AddressLane::kQuarantinedFrees;
  AddressLane lane(kBegin, ranges * 512);
  for (std::uint64_t i = 0; i < ranges; ++i) {
    const auto taken = lane.Take(512, 512);
    ASSERT_EQ(taken, kBegin + i * 512);
    lane.Give(*taken, 512);
  }
  EXPECT_EQ(lane.Take(512, 512), kBegin);
}

TEST(AddressLaneTest, AFullLaneGivesNothing) {
  AddressLane lane(kBegin, 1024);
  ASSERT_TRUE(lane.Take(1024, 512));
  EXPECT_FALSE(lane.Take(512, 512));
  lane.Give(kBegin, 1024);
  // Still in quarantine.
  EXPECT_FALSE(lane.Take(512, 512));
  EXPECT_EQ(lane.TakeLowest(512, 512), kBegin);
}

TEST(AddressLaneTest, TakeLowestLooksAtEveryGap) {
  const int gaps = 4 * AddressLane::kMaxGapsTried;
  const std::uint64_t bytes = static_cast<std::uint64_t>(gaps) * 1024 + 2048;
  AddressLane lane(kBegin, bytes);
  ASSERT_TRUE(lane.Take(bytes, 512));
  for (int i = 0; i < gaps; ++i) {
    lane.Give(kBegin + static_cast<std::uint64_t>(i) * 1024, 512);
  }
  lane.Give(kBegin + bytes - 1024, 1024);
  EXPECT_EQ(lane.TakeLowest(1024, 512), kBegin + bytes - 1024);
  EXPECT_FALSE(lane.TakeLowest(1024, 512));
}

TEST(AddressLaneTest, SearchGoesOnBehindTheGapsItTried) {
  const std::uint64_t gaps = 3 * AddressLane::kMaxGapsTried;
  const std::uint64_t bytes = gaps * 1024 + 4096;
  AddressLane lane(kBegin, bytes);
  ASSERT_TRUE(lane.Take(bytes, 512));
  for (std::uint64_t i = 0; i < gaps; ++i) lane.Give(kBegin + i * 1024, 512);
  lane.Give(kBegin + bytes - 4096, 4096);
  // Ends the quarantine of the others.
  ASSERT_EQ(lane.TakeLowest(512, 512), kBegin);
  int attempts = 1;
  while (!lane.Take(1024, 512)) ASSERT_LT(++attempts, 10);
  EXPECT_GT(attempts, 1);
}

// Ranges never overlap and stay inside. A freed range is not reused for as many
// frees as the quarantine holds.
TEST(AddressLaneTest, RandomUseNeverOverlapsNorReusesEarly) {
  const std::uint64_t bytes = std::uint64_t{64} << 20;
  AddressLane lane(kBegin, bytes);
  std::mt19937_64 random(7);
  std::map<std::uint64_t, std::uint64_t> live;     // begin -> bytes
  std::map<std::uint64_t, std::uint64_t> resting;  // begin -> bytes
  std::deque<std::uint64_t> resting_order;
  std::vector<std::uint64_t> begins;
  const auto overlaps = [](const std::map<std::uint64_t, std::uint64_t>& map,
                           std::uint64_t begin, std::uint64_t size) {
    auto next = map.lower_bound(begin);
    if (next != map.end() && next->first < begin + size) return true;
    return next != map.begin() && (--next)->first + next->second > begin;
  };
  std::uint64_t handed_out = 0;
  for (int step = 0; step < 60000; ++step) {
    if (begins.size() < 100 || random() % 2 == 0) {
      const std::uint64_t alignment = std::uint64_t{512} << (random() % 3);
      const std::uint64_t size = alignment * (1 + random() % 8);
      const auto begin = lane.Take(size, alignment);
      ASSERT_TRUE(begin) << step;
      ASSERT_EQ(*begin % alignment, 0u);
      ASSERT_GE(*begin, kBegin);
      ASSERT_LE(*begin + size, kBegin + bytes);
      ASSERT_FALSE(overlaps(live, *begin, size)) << step;
      ASSERT_FALSE(overlaps(resting, *begin, size)) << step;
      live[*begin] = size;
      begins.push_back(*begin);
      handed_out += size;
    } else {
      std::swap(begins[random() % begins.size()], begins.back());
      const std::uint64_t begin = begins.back();
      begins.pop_back();
      lane.Give(begin, live[begin]);
      resting[begin] = live[begin];
      resting_order.push_back(begin);
      live.erase(begin);
      if (resting_order.size() > AddressLane::kQuarantinedFrees) {
        resting.erase(resting_order.front());
        resting_order.pop_front();
      }
    }
  }
  EXPECT_GT(handed_out, 2 * bytes) << "the lane was to wrap around";
}

}  // namespace
}  // namespace strata::sim
