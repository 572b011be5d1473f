// The front cache of a BuddyPool: freed blocks that stay whole, and the other
// requests that may use them (hotpath.md §6).

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "strata/base/size.h"
#include "strata/strategy/blocks/front_cache_policy.h"
#include "strata/strategy/buddy/buddy_pool.h"
#include "strata/strategy/buddy/naive_best_fit_allocator.h"
#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

constexpr std::size_t kPiece = Kibibytes(64);

class BuddyCacheTest : public ::testing::Test {
 protected:
  ~BuddyCacheTest() override {
    if (pool_ == nullptr) return;
    for (Block* block : live_) pool_->Give(block);
    while (Allocation* memory = pool_->DetachIdle(0)) source_->Give(memory);
    EXPECT_TRUE(pool_->IsConsistent());
    EXPECT_EQ(pool_->stats().chunks, 0U);
  }
  // Chunks of 1 MiB.
  void Use(const std::string& mode) {
    StrategyOptions options;
    options.Edit<FrontCacheOptions>().front_cache = mode;
    options.Edit<BuddyOptions>().initial_gpu_memory_in_mb = 1;
    options.Edit<BuddyOptions>().reallocate_gpu_memory_in_mb = 1;
    source_ = std::make_unique<BuddySource>(
        "test", place_.pool(), place_.NewChainStream(),
        BuddySizes(options, PlaceKind::kDevice));
    pool_ = std::make_unique<BuddyPool>(*source_);
  }
  Block* Get(std::size_t bytes, std::uint32_t flags = 0) {
    Failure failure;
    Allocation* const allocation = pool_->TryAllocate(
        Request{bytes, 0, flags}, AlignUp(bytes, 256), failure);
    return allocation != nullptr ? allocation->block() : nullptr;
  }
  // One chunk full of pieces of 64 KiB. The first two are freed and cached,
  // because their size was searched often.
  void LeaveTwo() {
    for (int i = 0; i < 16; ++i) live_.push_back(Get(kPiece));
    ASSERT_EQ(live_.back()->data, live_.front()->data + 15 * kPiece);
    pool_->Give(live_[0]);
    pool_->Give(live_[1]);
    low_ = live_[0]->data;
    live_.erase(live_.begin(), live_.begin() + 2);
  }
  std::uint64_t Growths() {
    return place_.device().CallCount(DeviceCall::kMemAlloc);
  }

  PoolPlace place_;
  std::unique_ptr<BuddySource> source_;
  std::unique_ptr<BuddyPool> pool_;
  std::vector<Block*> live_;
  std::byte* low_ = nullptr;  // begin of the two freed pieces
};

TEST_F(BuddyCacheTest, ABlockOfASizeThatComesAgainStaysWhole) {
  // Number of searches until the cache admits the size. Otherwise each round
  // splits it from its neighbour, and joins it again.
  const std::map<std::string, std::uint64_t> splits = {
      {"memory", 2}, {"speed", 8}, {"off", 10}};
  for (const auto& [mode, count] : splits) {
    SCOPED_TRACE(mode);
    Use(mode);
    for (int i = 0; i < 10; ++i) pool_->Give(Get(1000));
    EXPECT_EQ(pool_->stats().splits, count);
    EXPECT_EQ(pool_->stats().cache_hits, 9U);
    source_->Give(pool_->DetachIdle(0));
  }
}

TEST_F(BuddyCacheTest, TheLastFreedIsTheNextHandedOut) {
  Use("memory");
  LeaveTwo();
  live_.push_back(Get(kPiece));
  EXPECT_EQ(live_.back()->data, low_ + kPiece);
  live_.push_back(pool_->TakeHit(1000, kPiece));
  EXPECT_EQ(live_.back()->data, low_);
  EXPECT_EQ(live_.back()->requested, 1000U);
}

TEST_F(BuddyCacheTest, IsEmptiedBeforeItGrows) {
  Use("memory");
  LeaveTwo();
  live_.push_back(Get(2 * kPiece));
  EXPECT_EQ(live_.back()->data, low_);
  EXPECT_EQ(Growths(), 1U);
}

TEST_F(BuddyCacheTest, IsEmptiedForAHit) {
  Use("memory");
  LeaveTwo();
  Block* const found = pool_->TakeHit(2 * kPiece, 2 * kPiece);
  ASSERT_NE(found, nullptr);
  live_.push_back(found);
  EXPECT_EQ(found->data, low_);
}

TEST_F(BuddyCacheTest, IsEmptiedForARequestThatMayNotGrow) {
  Use("memory");
  LeaveTwo();
  Block* const found = Get(2 * kPiece, kNoGrowth);
  ASSERT_NE(found, nullptr);
  live_.push_back(found);
  EXPECT_EQ(found->data, low_);
}

TEST_F(BuddyCacheTest, IsEmptiedAtExhaustion) {
  Use("memory");
  LeaveTwo();
  Allocation* const found = pool_->TryCached(Request{2 * kPiece}, 2 * kPiece);
  ASSERT_NE(found, nullptr);
  live_.push_back(found->block());
}

TEST_F(BuddyCacheTest, WhatIsKeptIsFreeInEveryNumber) {
  Use("memory");
  LeaveTwo();
  const Stats stats = pool_->stats();
  EXPECT_EQ(stats.in_use_bytes, 14 * kPiece);
  EXPECT_EQ(stats.free_blocks, 1U);
  EXPECT_EQ(stats.largest_free_bytes, 2 * kPiece);
}

TEST_F(BuddyCacheTest, WhatIsKeptIsListedAsFree) {
  Use("memory");
  LeaveTwo();
  std::vector<BlockInfo> blocks;
  pool_->AppendBlocks(blocks);
  ASSERT_EQ(blocks.size(), 15U);
  EXPECT_EQ(blocks[0].size_bytes, 2 * kPiece);
  EXPECT_TRUE(blocks[0].is_free());
}

TEST_F(BuddyCacheTest, AChunkOfKeptBlocksIsIdle) {
  Use("memory");
  for (int i = 0; i < 4; ++i) pool_->Give(Get(1000));
  EXPECT_EQ(pool_->Idle(0).bytes, Mebibytes(1));
  pool_->Give(Get(1000));
  EXPECT_EQ(pool_->Idle(0).system_bytes, Mebibytes(2));
  for (int i = 0; i < 2; ++i) pool_->Give(Get(1000));
  EXPECT_EQ(pool_->Idle(1).best_fit, Mebibytes(1));
  for (int i = 0; i < 2; ++i) pool_->Give(Get(1000));
  EXPECT_EQ(pool_->Idle(1).largest, Mebibytes(1));
  for (int i = 0; i < 2; ++i) pool_->Give(Get(1000));
  Allocation* const memory = pool_->DetachIdle(1);
  ASSERT_NE(memory, nullptr);
  source_->Give(memory);
}

// 512 KiB of the first few chunks; the other blocks were joined, and are split
// again.
TEST_F(BuddyCacheTest, KeepsNoMoreThanTheLimit) {
  Use("memory");
  for (int i = 0; i < 16; ++i) live_.push_back(Get(kPiece));
  for (Block* block : live_) pool_->Give(block);
  live_.clear();
  for (int i = 0; i < 16; ++i) live_.push_back(Get(kPiece));
  EXPECT_EQ(pool_->stats().splits, 15U + 7U);
}

TEST_F(BuddyCacheTest, AnUnknownModeIsRefused) {
  StrategyOptions options;
  options.Edit<FrontCacheOptions>().front_cache = "fast";
  try {
    const NaiveBestFitAllocator refused(place_.pool(), place_.NewChainStream(),
                                        options);
    FAIL() << "it was accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("strata_front_cache"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace strata
