// The front cache of auto_growth: freed blocks that stay whole, and the other
// requests that may use them (hotpath.md §6).

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "strata/base/size.h"
#include "strata/tests/testing/layers/test_place.h"

namespace strata {
namespace {

class AutoGrowthCacheTest : public ::testing::Test {
 protected:
  void Use(const std::string& mode, TestPlaceOptions options = {}) {
    options.strategy_options.Edit<FrontCacheOptions>().front_cache = mode;
    options.strategy_options.Edit<AutoGrowthOptions>().auto_growth_chunk_rule =
        "exact";
    place_ = std::make_unique<TestPlace>(options);
    chain_ = place_->AddChain();
  }
  AllocationPtr Get(std::size_t bytes) { return chain_->Allocate(bytes); }
  AutoGrowthAllocator& strategy() { return chain_.auto_growth(); }
  std::uint64_t Growths() {
    return place_->device().CallCount(DeviceCall::kMemAlloc);
  }
  // One chunk of 64 KiB. Its first 32 KiB are two adjacent freed blocks of 16
  // KiB, a size that the cache admits. Returns the block above them.
  AllocationPtr LeaveTwo() {
    Get(Kibibytes(64)).reset();
    // Two searches: the cache admits 16 KiB.
    for (int i = 0; i < 2; ++i) Get(Kibibytes(16)).reset();
    // A query joins the cached blocks.
    EXPECT_EQ(strategy().stats().in_use_bytes, 0U);
    AllocationPtr upper = Get(Kibibytes(32));
    AllocationPtr second = Get(Kibibytes(16));
    AllocationPtr first = Get(Kibibytes(16));
    EXPECT_EQ(first->base(), upper->base());
    second.reset();
    first.reset();
    return upper;
  }
  static std::size_t Splits(const TestChain& chain) {
    return chain.auto_growth().stats().splits;
  }

  std::unique_ptr<TestPlace> place_;
  TestChain chain_;
};

TEST_F(AutoGrowthCacheTest, ABlockOfASizeThatComesAgainStaysWhole) {
  // Number of searches until the cache admits a size.
  const std::pair<const char*, std::size_t> modes[] = {
      {"memory", 2}, {"speed", 8}, {"off", 20}};
  for (const auto& [mode, searches] : modes) {
    SCOPED_TRACE(mode);
    Use(mode);
    Get(Kibibytes(256)).reset();
    const AllocationPtr above = Get(Kibibytes(64));
    for (int i = 0; i < 20; ++i) Get(1000).reset();
    // Otherwise each round splits it from its neighbour, and joins it again.
    EXPECT_EQ(Splits(chain_), 1 + searches);
  }
}

TEST_F(AutoGrowthCacheTest, TheLastFreedIsTheNextHandedOut) {
  Use("memory");
  const AllocationPtr above = LeaveTwo();
  AllocationPtr first = Get(Kibibytes(16));
  AllocationPtr second = Get(Kibibytes(16));
  const void* const low = first->data();
  EXPECT_LT(low, second->data());
  first.reset();
  EXPECT_EQ(Get(Kibibytes(16))->data(), low);
}

TEST_F(AutoGrowthCacheTest, IsEmptiedBeforeItGrows) {
  Use("memory");
  const AllocationPtr above = LeaveTwo();
  const std::uint64_t growths = Growths();
  const AllocationPtr joined = Get(Kibibytes(32));
  EXPECT_EQ(joined->base(), above->base());
  EXPECT_EQ(Growths(), growths);
}

TEST_F(AutoGrowthCacheTest, IsEmptiedForARequestThatMayNotGrow) {
  Use("memory");
  const AllocationPtr above = LeaveTwo();
  Failure failure;
  Request request{Kibibytes(32)};
  request.flags = kNoGrowth;
  const AllocationPtr joined(chain_->AllocateOrNull(request, failure));
  EXPECT_NE(joined, nullptr);
}

// A cached block may lie in a chunk of long-lived blocks.
TEST_F(AutoGrowthCacheTest, IsEmptiedForALongLivedBlock) {
  Use("memory");
  const AllocationPtr above = LeaveTwo();
  const Request request{Kibibytes(16), 0, kLongLived};
  AllocationPtr kept = chain_->Allocate(request);
  const void* const address = kept->data();
  const std::uint64_t growths = Growths();
  kept.reset();
  const AllocationPtr again = chain_->Allocate(request);
  EXPECT_EQ(again->data(), address);
  EXPECT_EQ(Growths(), growths);
}

TEST_F(AutoGrowthCacheTest, AChunkOfCachedBlocksIsIdle) {
  Use("memory");
  AllocationPtr above = LeaveTwo();
  above.reset();
  EXPECT_EQ(strategy().Release(), Kibibytes(64));
  EXPECT_EQ(place_->pool()->reserved_bytes(), 0U);
}

TEST_F(AutoGrowthCacheTest, WhatIsKeptIsNotInUse) {
  Use("memory");
  const AllocationPtr above = LeaveTwo();
  const Stats stats = strategy().stats();
  EXPECT_EQ(stats.in_use_bytes, Kibibytes(32));
  EXPECT_EQ(stats.reserved_bytes, Kibibytes(64));
  EXPECT_TRUE(strategy().IsConsistent());
}

TEST_F(AutoGrowthCacheTest, HitsAreCountedAsOthersAre) {
  Use("off");
  for (int i = 0; i < 10; ++i) Get(1000).reset();
  const Stats without = strategy().stats();
  Use("memory");
  for (int i = 0; i < 10; ++i) Get(1000).reset();
  EXPECT_EQ(strategy().stats().cache_hits, without.cache_hits);
  EXPECT_EQ(strategy().stats().cache_misses, without.cache_misses);
}

TEST_F(AutoGrowthCacheTest, MemoryFirstKeepsNoLargeBlock) {
  Use("memory");
  Get(Mebibytes(4)).reset();
  const AllocationPtr above = Get(Mebibytes(1));
  for (int i = 0; i < 10; ++i) Get(Kibibytes(64) + 1).reset();
  EXPECT_EQ(Splits(chain_), 11U);
}

TEST_F(AutoGrowthCacheTest, MemoryFirstKeepsAPartOfWhatIsReserved) {
  for (const char* mode : {"memory", "speed"}) {
    SCOPED_TRACE(mode);
    Use(mode);
    Get(Mebibytes(2)).reset();
    const AllocationPtr above = Get(4096);
    const std::size_t before = Splits(chain_);
    std::vector<AllocationPtr> blocks;
    for (int round = 0; round < 2; ++round) {
      for (int i = 0; i < 256; ++i) blocks.push_back(Get(4096));
      blocks.clear();
    }
    // Half of the 1 MiB is cached, and the other half is split again.
    const std::size_t cut_anew = mode == std::string("memory") ? 128 : 0;
    EXPECT_EQ(Splits(chain_) - before, 256 + cut_anew);
  }
}

TEST_F(AutoGrowthCacheTest, TheLargestBlockToKeepIsTheUsersToSay) {
  TestPlaceOptions options;
  options.strategy_options.Edit<FrontCacheOptions>()
      .front_cache_max_block_bytes = 512;
  Use("memory", options);
  Get(Kibibytes(256)).reset();
  const AllocationPtr above = Get(Kibibytes(64));
  for (int i = 0; i < 10; ++i) Get(513).reset();
  EXPECT_EQ(Splits(chain_), 11U);
  for (int i = 0; i < 10; ++i) Get(512).reset();
  EXPECT_EQ(Splits(chain_), 13U);
}

// A cached block would prevent its chunk from being idle.
TEST_F(AutoGrowthCacheTest, NothingIsKeptWhereIdleChunksGoBackAtOnce) {
  TestPlaceOptions options;
  options.strategy_options.Edit<AutoGrowthOptions>().free_idle_chunk = true;
  options.strategy_options.Edit<AutoGrowthOptions>()
      .auto_growth_chunk_size_in_mb = 1;
  Use("speed", options);
  AllocationPtr above = Get(1000);
  for (int i = 0; i < 10; ++i) Get(1000).reset();
  above.reset();
  EXPECT_EQ(place_->pool()->reserved_bytes(), 0U);
}

// A cached block is lent like any free block, after the work before its own
// free.
TEST_F(AutoGrowthCacheTest, AnotherStreamBorrowsWhatIsKept) {
  TestPlaceOptions options;
  options.memory_bytes = Gibibytes(4);
  options.progress = "manual";
  options.strategy_options.Edit<FrontCacheOptions>().front_cache = "speed";
  TestPlace place(options);
  const TestChain lender = place.AddChain();
  const TestChain borrower = place.AddChain();
  const auto work = [&](const TestChain& chain) {
    EXPECT_EQ(place.device().Enqueue(chain.stream(), nullptr, 0, 1000, 0),
              Status::kSuccess);
  };
  const auto growths = [&] {
    return place.device().CallCount(DeviceCall::kMemAlloc);
  };
  const AllocationPtr above = lender->Allocate(Mebibytes(9));
  const AllocationPtr middle = lender->Allocate(Mebibytes(3));
  for (int i = 0; i < 9; ++i) {
    AllocationPtr kept = lender->Allocate(Mebibytes(8));
    work(lender);
    kept.reset();
  }
  ASSERT_EQ(growths(), 1U);
  // Its work is not complete: the borrower grows.
  const AllocationPtr grown = borrower->Allocate(Mebibytes(8));
  EXPECT_EQ(growths(), 2U);
  const AllocationPtr rest = borrower->Allocate(Mebibytes(12));
  place.device().StepAll();
  const std::uint64_t before = growths();
  const AllocationPtr borrowed = borrower->Allocate(Mebibytes(8));
  EXPECT_EQ(borrowed->base(), above->base());
  EXPECT_EQ(growths(), before);
}

}  // namespace
}  // namespace strata
