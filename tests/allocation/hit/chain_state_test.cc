#include "strata/allocation/hit/chain_state.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <mutex>

namespace strata {
namespace {

TEST(ChainStateTest, BeginsWithoutPlainHits) {
  ChainState state;
  EXPECT_EQ(state.attention, &ChainState::kNeverPlain);
  EXPECT_NE(*state.attention, 0U);
  EXPECT_EQ(state.counts.live_allocations(), 0U);
  EXPECT_EQ(state.cache.hits(), 0U);
  const std::lock_guard<ChainLock> guard(state.lock);
  EXPECT_FALSE(state.lock.is_open());
}

TEST(ChainStateTest, KeepsNothingUnlessToldTo) {
  Block block;
  block.size = 256;
  ChainState state;
  for (int i = 0; i < 10; ++i) state.cache.NoteSearch(block.size);
  EXPECT_FALSE(state.cache.Give(&block));
  EXPECT_EQ(state.cache.Take(1), nullptr);
  EXPECT_EQ(state.cache.Take(0), nullptr);
}

TEST(ChainStateTest, KeepsBlocksUpToTheSizeThatItIsTold) {
  Block block;
  block.size = 4096;
  ChainState state;
  state.cache.Configure(std::size_t{1} << 20, 256, 1);
  state.cache.NoteSearch(block.size);
  ASSERT_TRUE(state.cache.Give(&block));
  EXPECT_EQ(state.cache.Take(block.size), &block);
}

// A free that a strategy declines counts as if it had not been.
TEST(ChainStateTest, ABlockThatIsNotFreedCountsAsBefore) {
  Block block;
  block.size = 512;
  block.requested = 300;
  UseCounts counts;
  counts.Count(block);
  counts.Uncount(block);
  counts.Recount(block);
  EXPECT_EQ(counts.live_allocations(), 1U);
  EXPECT_EQ(counts.in_use_bytes(), 512U);
  EXPECT_FALSE(counts.is_beyond_limit());
}

}  // namespace
}  // namespace strata
