#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "strata/tools/bench/cores.h"
#include "strata/tools/bench/ring.h"
#include "strata/tools/bench/team.h"

namespace strata::tools {
namespace {

TEST(BenchTeamTest, EveryThreadDoesEveryRunAndKeepsItsNumber) {
  constexpr std::size_t kThreads = 3;
  BenchTeam team(kThreads, {});
  std::vector<std::thread::id> ids(kThreads);
  for (int run = 0; run < 20; ++run) {
    std::vector<int> done(kThreads, 0);
    const auto times = team.Run([&](std::size_t thread) {
      ++done[thread];
      if (run == 0) ids[thread] = std::this_thread::get_id();
      EXPECT_EQ(ids[thread], std::this_thread::get_id());
    });
    EXPECT_EQ(done, std::vector<int>(kThreads, 1));
    EXPECT_EQ(times.size(), kThreads);
  }
  EXPECT_EQ(std::set<std::thread::id>(ids.begin(), ids.end()).size(), kThreads);
}

// No thread passes the start before all have arrived: otherwise a thread that
// waits for others would see one alone.
TEST(BenchTeamTest, AllBeginTogether) {
  BenchTeam team(2, {});
  for (int run = 0; run < 20; ++run) {
    std::atomic<int> begun{0};
    team.Run([&](std::size_t) {
      ++begun;
      while (begun != 2) std::this_thread::yield();
    });
    EXPECT_EQ(begun, 2);
  }
}

TEST(BenchTeamTest, AnErrorComesOutWhenAllAreDone) {
  BenchTeam team(2, {});
  std::atomic<int> done{0};
  const auto fail = [&](std::size_t thread) {
    ++done;
    if (thread == 1) throw std::runtime_error("no more");
  };
  EXPECT_THROW(team.Run(fail), std::runtime_error);
  EXPECT_EQ(done, 2);
  EXPECT_NO_THROW(team.Run([&](std::size_t) { ++done; }));
  EXPECT_EQ(done, 4);
}

TEST(BenchTeamTest, ThreadsAreKeptOnTheCoresInTurn) {
  const std::vector<int> allowed = AllowedCores();
  ASSERT_FALSE(allowed.empty());
  EXPECT_TRUE(std::is_sorted(allowed.rbegin(), allowed.rend()));
  BenchTeam team(allowed.size() + 1, allowed);
  std::vector<std::vector<int>> seen(allowed.size() + 1);
  team.Run([&](std::size_t thread) { seen[thread] = AllowedCores(); });
  for (std::size_t i = 0; i < seen.size(); ++i) {
    EXPECT_EQ(seen[i], std::vector<int>{allowed[i % allowed.size()]});
  }
  EXPECT_EQ(AllowedCores(), allowed);
}

TEST(BenchRingTest, IsFullAtItsCapacityAndKeepsTheOrder) {
  BenchRing<int> ring;
  constexpr int kCapacity = BenchRing<int>::kCapacity;
  int value = -1;
  EXPECT_FALSE(ring.TryPop(value));
  for (int i = 0; i < kCapacity; ++i) EXPECT_TRUE(ring.TryPush(i));
  value = 7;
  EXPECT_FALSE(ring.TryPush(value));
  EXPECT_EQ(value, 7);
  for (int i = 0; i < kCapacity; ++i) {
    ASSERT_TRUE(ring.TryPop(value));
    EXPECT_EQ(value, i);
  }
  EXPECT_FALSE(ring.TryPop(value));
  EXPECT_EQ(ring.most(), BenchRing<int>::kCapacity);
}

TEST(BenchRingTest, KnowsTheMostThatItHeld) {
  BenchRing<int> ring;
  int value = 0;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(ring.TryPush(value));
  for (int i = 0; i < 3000; ++i) {
    EXPECT_TRUE(ring.TryPop(value));
    EXPECT_TRUE(ring.TryPush(value));
  }
  EXPECT_EQ(ring.most(), 3U);
}

TEST(BenchRingTest, LeavesAValueAloneThatItHasNoRoomFor) {
  BenchRing<std::unique_ptr<int>> ring;
  for (std::size_t i = 0; i < BenchRing<int>::kCapacity; ++i) {
    auto value = std::make_unique<int>(0);
    ASSERT_TRUE(ring.TryPush(value));
  }
  auto value = std::make_unique<int>(5);
  EXPECT_FALSE(ring.TryPush(value));
  ASSERT_NE(value, nullptr);
  EXPECT_EQ(*value, 5);
}

TEST(BenchRingTest, HandsEveryValueOverOnce) {
  constexpr int kValues = 20'000;
  BenchRing<int> ring;
  BenchTeam team(2, {});
  int wrong = 0;
  team.Run([&](std::size_t thread) {
    for (int i = 0; i < kValues; ++i) {
      int value = i;
      if (thread == 0) {
        while (!ring.TryPush(value)) std::this_thread::yield();
      } else {
        while (!ring.TryPop(value)) std::this_thread::yield();
        if (value != i) ++wrong;
      }
    }
  });
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace strata::tools
