#include "strata/allocation/hit/hit_state.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <mutex>

namespace strata {
namespace {

TEST(HitStateTest, BeginsWithoutPlainHits) {
  HitState hit;
  EXPECT_EQ(hit.attention, &HitState::kNeverPlain);
  EXPECT_NE(*hit.attention, 0U);
  EXPECT_EQ(hit.counts.live_allocations(), 0U);
  EXPECT_EQ(hit.cache.hits(), 0U);
  const std::lock_guard<ChainLock> guard(hit.lock);
  EXPECT_FALSE(hit.lock.is_open());
}

TEST(HitStateTest, KeepsNothingUnlessToldTo) {
  Block block;
  block.size = 256;
  HitState hit;
  for (int i = 0; i < 10; ++i) hit.cache.NoteSearch(block.size);
  EXPECT_FALSE(hit.cache.Give(&block));
  EXPECT_EQ(hit.cache.Take(1), nullptr);
  EXPECT_EQ(hit.cache.Take(0), nullptr);
}

TEST(HitStateTest, KeepsBlocksUpToTheSizeThatItIsTold) {
  Block block;
  block.size = 4096;
  HitState hit(/*may_bias=*/false, std::size_t{1} << 20, 256, 1);
  hit.cache.NoteSearch(block.size);
  ASSERT_TRUE(hit.cache.Give(&block));
  EXPECT_EQ(hit.cache.Take(block.size), &block);
}

}  // namespace
}  // namespace strata
