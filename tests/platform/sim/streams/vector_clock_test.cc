#include "strata/platform/sim/streams/vector_clock.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>

namespace strata::sim {
namespace {

TEST(VectorClockTest, NamesNothingAtFirst) {
  const VectorClock clock;
  EXPECT_EQ(clock.At(1), 0u);
  EXPECT_EQ(clock.size(), 0u);
}

TEST(VectorClockTest, RaiseNeverLowers) {
  VectorClock clock;
  clock.Raise(3, 5);
  clock.Raise(3, 4);
  EXPECT_EQ(clock.At(3), 5u);
  clock.Raise(3, 6);
  EXPECT_EQ(clock.At(3), 6u);
}

TEST(VectorClockTest, RaiseToNothingNamesNoStream) {
  VectorClock clock;
  clock.Raise(3, 0);
  EXPECT_EQ(clock.size(), 0u);
}

TEST(VectorClockTest, ForgetIfLeavesTheOthers) {
  VectorClock clock;
  clock.Raise(1, 1);
  clock.Raise(2, 2);
  clock.ForgetIf([](std::uint64_t key) { return key == 1 || key == 7; });
  EXPECT_EQ(clock.At(1), 0u);
  EXPECT_EQ(clock.At(2), 2u);
  ASSERT_EQ(clock.size(), 1u);
  EXPECT_EQ(clock.KeyOf(0), 2u);
}

TEST(VectorClockTest, JoinIsTheLargerOfEachPair) {
  std::mt19937_64 random(20);
  for (int round = 0; round < 200; ++round) {
    VectorClock clocks[2];
    std::map<std::uint64_t, std::uint64_t> larger;
    for (VectorClock& clock : clocks) {
      for (int i = 0; i < 12; ++i) {
        const std::uint64_t key = random() % 20;
        const std::uint64_t count = random() % 9;
        clock.Raise(key, count);
        larger[key] = std::max(larger[key], count);
      }
    }
    clocks[0].Join(clocks[1]);
    for (const auto& [key, count] : larger) {
      EXPECT_EQ(clocks[0].At(key), count);
    }
    for (std::size_t i = 1; i < clocks[0].size(); ++i) {
      EXPECT_LT(clocks[0].KeyOf(i - 1), clocks[0].KeyOf(i));
    }
  }
}

}  // namespace
}  // namespace strata::sim
