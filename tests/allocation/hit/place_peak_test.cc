#include "strata/allocation/hit/place_peak.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "strata/allocation/hit/chain_state.h"

namespace strata {
namespace {

// Counts blocks of any size on chains, as a hit does.
class PlacePeakTest : public ::testing::Test {
 protected:
  ~PlacePeakTest() override {
    for (const auto& chain : chains_) {
      if (chain->place_peak != nullptr) peak_.Remove(*chain);
    }
  }

  ChainState& NewChain() {
    chains_.push_back(std::make_unique<ChainState>());
    peak_.Add(*chains_.back());
    return *chains_.back();
  }
  static void Use(ChainState& chain, std::uint64_t bytes) {
    Block block;
    block.size = bytes;
    chain.lock.lock();
    chain.Count(block);
    chain.EndCount();
  }
  static void Free(ChainState& chain, std::uint64_t bytes) {
    Block block;
    block.size = bytes;
    chain.lock.lock();
    chain.counts.Uncount(block);
    chain.lock.unlock();
  }
  // Whether the next byte of `chain` needs the other chains.
  static bool IsSpent(const ChainState& chain) {
    return chain.counts.in_use_bytes() >= chain.allowance_bytes;
  }
  std::uint64_t SumOfAllowances() const {
    std::uint64_t sum = 0;
    for (const auto& chain : chains_) sum += chain->allowance_bytes;
    return sum;
  }

  PlacePeak peak_;
  std::vector<std::unique_ptr<ChainState>> chains_;
};

TEST_F(PlacePeakTest, IsTheMostOfAllChainsAtOnce) {
  ChainState& a = NewChain();
  ChainState& b = NewChain();
  Use(a, 10);
  Free(a, 10);
  Use(b, 5);
  EXPECT_EQ(peak_.bytes(), 10U);
  Use(a, 8);
  EXPECT_EQ(peak_.bytes(), 13U);
  EXPECT_FALSE(peak_.is_bound());
}

TEST_F(PlacePeakTest, AChainWithinItsAllowanceAsksNoOther) {
  ChainState& a = NewChain();
  ChainState& b = NewChain();
  Use(a, 50);
  Use(b, 50);
  Free(a, 50);
  Free(b, 50);
  // The lock of b is held: a request that needs it would not return.
  b.lock.lock();
  Use(a, 50);
  b.lock.unlock();
  EXPECT_FALSE(a.counts.is_beyond_limit());
  EXPECT_EQ(peak_.bytes(), 100U);
}

TEST_F(PlacePeakTest, TheRestOfThePeakIsDividedEvenly) {
  ChainState& a = NewChain();
  ChainState& b = NewChain();
  Use(a, 90);
  Free(a, 90);
  Use(b, 10);  // 80 are left
  EXPECT_EQ(a.allowance_bytes, 40U);
  EXPECT_EQ(b.allowance_bytes, 50U);
}

TEST_F(PlacePeakTest, TheAllowanceOfAChainThatEndsServesTheOthers) {
  ChainState& a = NewChain();
  ChainState& b = NewChain();
  Use(a, 90);
  Free(a, 90);
  Use(b, 10);
  Free(b, 10);
  peak_.Remove(a);
  Use(b, 90);
  EXPECT_EQ(peak_.bytes(), 90U);
  EXPECT_TRUE(IsSpent(b));
  Use(b, 1);
  EXPECT_EQ(peak_.bytes(), 91U);
}

// The peak of each chain is its own, whatever its allowance is.
TEST_F(PlacePeakTest, EachChainKeepsItsOwnPeak) {
  ChainState& a = NewChain();
  ChainState& b = NewChain();
  Use(a, 60);
  Free(a, 60);
  Use(b, 60);
  Free(b, 60);
  Use(a, 20);
  Stats stats;
  a.counts.FillIn(stats);
  EXPECT_EQ(stats.peak_in_use_bytes, 60U);
  b.counts.FillIn(stats);
  EXPECT_EQ(stats.peak_in_use_bytes, 60U);
  EXPECT_EQ(peak_.bytes(), 60U);
}

TEST_F(PlacePeakTest, ResetForgetsThePeakOfEveryChain) {
  ChainState& a = NewChain();
  ChainState& b = NewChain();
  Use(a, 60);
  Use(b, 30);
  Free(a, 50);
  peak_.Reset();
  EXPECT_EQ(peak_.bytes(), 40U);
  EXPECT_TRUE(IsSpent(a));
  EXPECT_TRUE(IsSpent(b));
  Use(b, 1);
  EXPECT_EQ(peak_.bytes(), 41U);
}

TEST_F(PlacePeakTest, IsABoundWithTooManyChains) {
  for (std::size_t i = 0; i <= PlacePeak::kMostChains; ++i) NewChain();
  for (const auto& chain : chains_) {
    Use(*chain, 10);
    Free(*chain, 10);
  }
  EXPECT_TRUE(peak_.is_bound());
  EXPECT_GE(peak_.bytes(), 10U);
  EXPECT_LE(peak_.bytes(), 10U * chains_.size());
  peak_.Reset();
  EXPECT_FALSE(peak_.is_bound());
  EXPECT_EQ(peak_.bytes(), 0U);
}

TEST_F(PlacePeakTest, StaysExactWithManyChainsIfItMust) {
  PlacePeak exact(true);
  std::vector<std::unique_ptr<ChainState>> many;
  for (std::size_t i = 0; i < 2 * PlacePeak::kMostChains; ++i) {
    many.push_back(std::make_unique<ChainState>());
    exact.Add(*many.back());
  }
  for (const auto& chain : many) {
    Use(*chain, 10);
    Free(*chain, 10);
  }
  EXPECT_EQ(exact.bytes(), 10U);
  EXPECT_FALSE(exact.is_bound());
  for (const auto& chain : many) exact.Remove(*chain);
}

// Random calls, beside a count of the whole place.
TEST_F(PlacePeakTest, RandomCallsPeakAsTheSumDoes) {
  for (int i = 0; i < 5; ++i) NewChain();
  std::mt19937 random(7);
  std::array<std::vector<std::uint64_t>, 5> live;
  std::uint64_t sum = 0;
  std::uint64_t most = 0;
  for (int step = 0; step < 20000; ++step) {
    const std::size_t at = random() % live.size();
    if (random() % 2 == 0 || live[at].empty()) {
      const std::uint64_t bytes = 1 + random() % 1000;
      Use(*chains_[at], bytes);
      live[at].push_back(bytes);
      sum += bytes;
      most = std::max(most, sum);
    } else {
      Free(*chains_[at], live[at].back());
      sum -= live[at].back();
      live[at].pop_back();
    }
    ASSERT_EQ(peak_.bytes(), most) << step;
    ASSERT_LE(SumOfAllowances(), most) << step;
    if (step % 1000 == 999) {
      peak_.Reset();
      most = sum;
    }
  }
}

// Threads raise the peak while others hold chains of the same place.
TEST_F(PlacePeakTest, ThreadsOfManyChainsNeverMissOrInventBytes) {
  constexpr std::size_t kThreads = 4;
  constexpr std::uint64_t kHeld = 1000;
  for (std::size_t i = 0; i < kThreads; ++i) NewChain();
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&chain = *chains_[i], i] {
      for (std::uint64_t round = 0; round < 2000; ++round) {
        Use(chain, 1 + (round * (i + 3)) % 97);
        Free(chain, 1 + (round * (i + 3)) % 97);
      }
      Use(chain, kHeld);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(peak_.bytes(), kThreads * kHeld);
  EXPECT_LE(SumOfAllowances(), kThreads * kHeld);
}

}  // namespace
}  // namespace strata
