#include "strata/allocation/hit/front_cache.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace strata {
namespace {

constexpr std::size_t kGranule = 256;
constexpr std::size_t kLargest = std::size_t{64} << 10;

class FrontCacheTest : public testing::Test {
 protected:
  Block* NewBlock(std::size_t bytes) {
    blocks_.emplace_back();
    blocks_.back().size = bytes;
    blocks_.back().flags = kBlockLive;
    return &blocks_.back();
  }
  // Two requests that the cache did not serve.
  void Admit(std::size_t bytes) {
    cache_.NoteSearch(bytes);
    cache_.NoteSearch(bytes);
  }
  static std::size_t Count(const Block* list) {
    std::size_t count = 0;
    for (; list != nullptr; list = list->free_next) ++count;
    return count;
  }

  FrontCache cache_{kLargest, kGranule};
  std::deque<Block> blocks_;
};

TEST_F(FrontCacheTest, ASizeIsAdmittedOnceItWasSearchedForTwice) {
  EXPECT_FALSE(cache_.Give(NewBlock(4096)));
  cache_.NoteSearch(4096);
  EXPECT_FALSE(cache_.Give(NewBlock(4096)));
  EXPECT_EQ(cache_.Take(4096), nullptr);
  EXPECT_EQ(cache_.Take(4096), nullptr);
  EXPECT_FALSE(cache_.Give(NewBlock(4096)));
  cache_.NoteSearch(4096);
  Block* block = NewBlock(4096);
  EXPECT_TRUE(cache_.Give(block));
  EXPECT_EQ(block->flags, 0);
  EXPECT_EQ(cache_.bytes(), 4096U);
  EXPECT_EQ(cache_.Take(4096), block);
  EXPECT_EQ(block->flags, kBlockLive);
  EXPECT_TRUE(cache_.empty());
}

TEST_F(FrontCacheTest, RequestsAreRoundedUpAndBlocksAreOfTheirSize) {
  Admit(4096);
  Block* block = NewBlock(4096);
  EXPECT_TRUE(cache_.Give(block));
  EXPECT_EQ(cache_.Take(4097), nullptr);
  EXPECT_EQ(cache_.Take(3840), nullptr);
  EXPECT_EQ(cache_.Take(3841), block);
}

TEST_F(FrontCacheTest, TheLastGivenIsTakenFirst) {
  Admit(512);
  std::vector<Block*> blocks;
  for (int i = 0; i < 5; ++i) blocks.push_back(NewBlock(512));
  for (Block* block : blocks) EXPECT_TRUE(cache_.Give(block));
  EXPECT_TRUE(cache_.IsConsistent());
  for (; !blocks.empty(); blocks.pop_back()) {
    EXPECT_EQ(cache_.Take(512), blocks.back());
  }
  EXPECT_EQ(cache_.hits(), 5U);
}

TEST_F(FrontCacheTest, LargeBlocksAndThoseAboveTheLimitAreNotKept) {
  Admit(kLargest);
  Admit(kLargest + kGranule);
  EXPECT_FALSE(cache_.Give(NewBlock(kLargest + kGranule)));
  cache_.set_limit_bytes(kLargest + kLargest / 2);
  EXPECT_TRUE(cache_.Give(NewBlock(kLargest)));
  EXPECT_FALSE(cache_.Give(NewBlock(kLargest)));
  EXPECT_EQ(cache_.bytes(), kLargest);
}

TEST_F(FrontCacheTest, ALimitBelowWhatIsKeptTakesNothingAway) {
  Admit(1024);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(cache_.Give(NewBlock(1024)));
  cache_.set_limit_bytes(1024);
  EXPECT_EQ(cache_.bytes(), 3072U);
  EXPECT_FALSE(cache_.Give(NewBlock(1024)));
  for (int i = 0; i < 3; ++i) EXPECT_NE(cache_.Take(1024), nullptr);
  EXPECT_TRUE(cache_.empty());
  EXPECT_TRUE(cache_.Give(NewBlock(1024)));
  EXPECT_FALSE(cache_.Give(NewBlock(1024)));
  EXPECT_TRUE(cache_.IsConsistent());
}

TEST_F(FrontCacheTest, CountsOnWhenSizesAreGivenUp) {
  Admit(512);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(cache_.Give(NewBlock(512)));
    EXPECT_NE(cache_.Take(512), nullptr);
  }
  EXPECT_TRUE(cache_.Give(NewBlock(512)));
  EXPECT_EQ(cache_.TakeStale(), nullptr);
  EXPECT_EQ(Count(cache_.TakeStale()), 1U);
  EXPECT_EQ(cache_.hits(), 3U);
}

TEST_F(FrontCacheTest, SizesThatWrapAroundAreNotKept) {
  EXPECT_EQ(cache_.Take(SIZE_MAX), nullptr);
  EXPECT_EQ(cache_.Take(SIZE_MAX - kGranule + 2), nullptr);
  EXPECT_EQ(cache_.Take(0), nullptr);
}

TEST_F(FrontCacheTest, TakeAllLeavesSizesAdmitted) {
  for (const std::size_t bytes : {512U, 1024U, 65536U}) {
    Admit(bytes);
    EXPECT_TRUE(cache_.Give(NewBlock(bytes)));
    EXPECT_TRUE(cache_.Give(NewBlock(bytes)));
  }
  EXPECT_EQ(Count(cache_.TakeAll()), 6U);
  EXPECT_TRUE(cache_.empty());
  EXPECT_EQ(cache_.TakeAll(), nullptr);
  EXPECT_TRUE(cache_.Give(NewBlock(1024)));
  EXPECT_TRUE(cache_.IsConsistent());
}

TEST_F(FrontCacheTest, TakeOutIsOneBlockAndNoHit) {
  Admit(4096);
  Admit(512);
  Block* const first = NewBlock(4096);
  Block* const last = NewBlock(4096);
  cache_.Give(first);
  cache_.Give(last);
  cache_.Give(NewBlock(512));
  EXPECT_EQ(cache_.TakeOut(256), nullptr);
  EXPECT_EQ(cache_.TakeOut(4096), last);
  EXPECT_EQ(last->free_next, nullptr);
  EXPECT_EQ(last->flags, 0);
  EXPECT_EQ(cache_.bytes(), 4096U + 512U);
  EXPECT_EQ(cache_.hits(), 0U);
  EXPECT_TRUE(cache_.IsConsistent());
  EXPECT_EQ(cache_.TakeOut(4096), first);
  EXPECT_EQ(cache_.TakeOut(4096), nullptr);
  EXPECT_TRUE(cache_.Give(first)) << "it stays admitted";
}

TEST_F(FrontCacheTest, SizesThatWentUnusedAreGivenUp) {
  Admit(512);
  Admit(1024);
  EXPECT_TRUE(cache_.Give(NewBlock(512)));
  EXPECT_TRUE(cache_.Give(NewBlock(1024)));
  EXPECT_EQ(cache_.TakeStale(), nullptr);  // both were used before
  EXPECT_NE(cache_.Take(1024), nullptr);
  EXPECT_FALSE(cache_.is_sweep_due());
  for (std::uint32_t i = 0; i < FrontCache::kSweep; ++i) {
    cache_.NoteSearch(2048);
  }
  EXPECT_TRUE(cache_.is_sweep_due());
  Block* stale = cache_.TakeStale();
  ASSERT_EQ(Count(stale), 1U);
  EXPECT_EQ(stale->size, 512U);
  EXPECT_FALSE(cache_.is_sweep_due());
  EXPECT_FALSE(cache_.Give(NewBlock(512)));
  EXPECT_TRUE(cache_.Give(NewBlock(1024)));
}

// More sizes than slots.
TEST_F(FrontCacheTest, SizesThatComeOnceKeepNoPlace) {
  constexpr std::size_t kSizes = 4096;
  FrontCache cache(kSizes * kGranule, kGranule);
  for (std::size_t i = 1; i <= kSizes; ++i) cache.NoteSearch(i * kGranule);
  for (int i = 0; i < 4; ++i) cache.NoteSearch(12800);
  std::size_t admitted = 0;
  for (std::size_t i = 1; i <= kSizes; ++i) {
    if (cache.Give(NewBlock(i * kGranule))) ++admitted;
  }
  EXPECT_EQ(admitted, 1U);
  EXPECT_EQ(cache.Take(12800)->size, 12800U);
}

TEST_F(FrontCacheTest, ASizeThatComesOftenGetsThePlaceOfOthers) {
  constexpr std::size_t kSizes = 4096;
  FrontCache cache(kSizes * kGranule, kGranule);
  for (std::size_t i = 1; i <= kSizes; ++i) {
    cache.NoteSearch(i * kGranule);
    cache.NoteSearch(i * kGranule);
  }
  constexpr std::size_t kLate = kSizes * kGranule;
  for (int i = 0; i < 8; ++i) cache.NoteSearch(kLate);
  EXPECT_TRUE(cache.Give(NewBlock(kLate)));
}

TEST_F(FrontCacheTest, HowManySearchesAdmitASizeIsItsOwnersToSay) {
  for (const std::uint8_t searches :
       {std::uint8_t{1}, std::uint8_t{2}, std::uint8_t{8}}) {
    FrontCache cache(kLargest, kGranule, searches);
    for (int met = 0; met < searches; ++met) {
      EXPECT_FALSE(cache.Give(NewBlock(4096))) << met << " of " << searches;
      cache.NoteSearch(4096);
    }
    EXPECT_TRUE(cache.Give(NewBlock(4096)));
  }
}

TEST_F(FrontCacheTest, OneThatIsOffKeepsNothing) {
  FrontCache off(0, kGranule);
  off.NoteSearch(256);
  off.NoteSearch(256);
  EXPECT_EQ(off.Take(256), nullptr);
  EXPECT_FALSE(off.Give(NewBlock(256)));
  EXPECT_EQ(off.TakeAll(), nullptr);
  EXPECT_TRUE(off.IsConsistent());
}

}  // namespace
}  // namespace strata
