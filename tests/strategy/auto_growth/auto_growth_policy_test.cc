// Rule numbers are those of paddle.md §3.3.

#include "strata/strategy/auto_growth/auto_growth_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "strata/base/size.h"

namespace strata {
namespace {

using ::testing::ElementsAre;
using Pool = AutoGrowthPolicy::Pool;

// The sizes that are tried, without unused entries.
std::vector<std::size_t> Sizes(const AutoGrowthPolicy& policy,
                               const AutoGrowthPolicy::Growth& growth) {
  std::vector<std::size_t> sizes;
  for (const std::size_t bytes : policy.GrowthSizes(growth)) {
    if (bytes != 0) sizes.push_back(bytes);
  }
  return sizes;
}
std::vector<std::size_t> Sizes(const AutoGrowthPolicy& policy, std::size_t size,
                               bool is_first = false) {
  return Sizes(
      policy,
      {.size = size, .pool = policy.PoolOf(size), .is_first = is_first});
}

StrategyOptions Exact() {
  StrategyOptions options;
  options.Edit<AutoGrowthOptions>().auto_growth_chunk_rule = "exact";
  return options;
}

StrategyOptions TwoPools() {
  StrategyOptions options;
  options.Edit<AutoGrowthOptions>().small_pool_size_in_mb = 1;
  return options;
}

TEST(AutoGrowthPolicyTest, GradedChunksFollowTheRequest) {
  const AutoGrowthPolicy policy{StrategyOptions()};
  EXPECT_THAT(Sizes(policy, 256), ElementsAre(Mebibytes(2), 256));
  EXPECT_THAT(Sizes(policy, Mebibytes(1)),
              ElementsAre(Mebibytes(2), Mebibytes(1)));
  EXPECT_THAT(Sizes(policy, Mebibytes(1) + 256),
              ElementsAre(Mebibytes(20), Mebibytes(10), Mebibytes(6),
                          Mebibytes(4), Mebibytes(2), Mebibytes(1) + 256));
  EXPECT_THAT(Sizes(policy, Mebibytes(10) - 256),
              ElementsAre(Mebibytes(20), Mebibytes(10), Mebibytes(10) - 256));
  EXPECT_THAT(Sizes(policy, Mebibytes(10)), ElementsAre(Mebibytes(10)));
  EXPECT_THAT(Sizes(policy, Mebibytes(33) + 256),
              ElementsAre(Mebibytes(34), Mebibytes(33) + 256));
}

// Like PyTorch's kSmallSize and kMinLargeAlloc (pytorch.md §2.1).
TEST(AutoGrowthPolicyTest, TwoBlocksShareAChunkThatOneWouldLeaveUnused) {
  const AutoGrowthPolicy policy(StrategyOptions{});
  const std::size_t wasteful = Mebibytes(12) + Kibibytes(256);
  EXPECT_THAT(Sizes(policy, wasteful),
              ElementsAre(Mebibytes(26), Mebibytes(14), wasteful));
  // One block leaves at most 1/16, two blocks leave no less, or both are too
  // large.
  EXPECT_THAT(Sizes(policy, Mebibytes(12)), ElementsAre(Mebibytes(12)));
  const std::size_t one_rest = Mebibytes(13) + Kibibytes(512);
  EXPECT_THAT(Sizes(policy, one_rest), ElementsAre(Mebibytes(14), one_rest));
  const std::size_t no_better = Mebibytes(10) + 256;
  EXPECT_THAT(Sizes(policy, no_better),
              ElementsAre(Mebibytes(22), Mebibytes(12), no_better));
  const std::size_t large = Mebibytes(14) + 256;
  EXPECT_THAT(Sizes(policy, large), ElementsAre(Mebibytes(16), large));
}

TEST(AutoGrowthPolicyTest, GradedRequestsOfUpToOneMebibyteAreSmall) {
  const AutoGrowthPolicy policy{StrategyOptions()};
  EXPECT_EQ(policy.PoolOf(256), Pool::kSmall);
  EXPECT_EQ(policy.PoolOf(Mebibytes(1)), Pool::kSmall);
  EXPECT_EQ(policy.PoolOf(Mebibytes(1) + 256), Pool::kLarge);
}

// An earlier fault: two blocks of 6 912 KiB in each 20 MiB took 1.48 times
// their size.
TEST(AutoGrowthPolicyTest, AChunkThatWouldWasteAQuarterIsChosenToFit) {
  const AutoGrowthPolicy policy{StrategyOptions()};
  EXPECT_EQ(Sizes(policy, Kibibytes(6912))[0], Mebibytes(14));
  EXPECT_EQ(Sizes(policy, Kibibytes(7000))[0], Mebibytes(14));
  EXPECT_EQ(Sizes(policy, Mebibytes(8))[0], Mebibytes(20));
}

TEST(AutoGrowthPolicyTest, WithoutBytesToSpareEveryChunkIsChosenToFit) {
  const AutoGrowthPolicy policy{StrategyOptions()};
  const auto tight = [&](std::size_t size) {
    return Sizes(policy,
                 {.size = size, .pool = Pool::kLarge, .spare_bytes = 0});
  };
  EXPECT_THAT(tight(Mebibytes(8)), ElementsAre(Mebibytes(16), Mebibytes(8)));
  EXPECT_THAT(tight(Mebibytes(6)), ElementsAre(Mebibytes(12), Mebibytes(6)));
  EXPECT_EQ(tight(Mebibytes(5))[0], Mebibytes(20));
}

// A limit counts bytes: rounding a chunk up leaves less of it.
TEST(AutoGrowthPolicyTest, UnderALimitLargeChunksAreNotRoundedUp) {
  const AutoGrowthPolicy policy{StrategyOptions()};
  const auto limited = [&](std::size_t size) {
    return Sizes(
        policy,
        {.size = size, .pool = policy.PoolOf(size), .is_limited = true});
  };
  EXPECT_THAT(limited(Mebibytes(33) + 256), ElementsAre(Mebibytes(33) + 256));
  EXPECT_EQ(limited(Mebibytes(7))[0], Mebibytes(14));
  EXPECT_EQ(limited(Kibibytes(700))[0], Mebibytes(2));
}

TEST(AutoGrowthPolicyTest, LongLivedBlocksShareChunksThatFitThem) {
  const AutoGrowthPolicy policy{StrategyOptions()};
  for (std::size_t size = Kibibytes(4); size <= Mebibytes(12);
       size = size * 17 / 16 / 256 * 256) {
    const std::size_t chunk =
        Sizes(policy, {.size = size, .pool = Pool::kLongLived})[0];
    const std::size_t used = chunk / size * size;
    EXPECT_LE(static_cast<double>(chunk), 1.1 * static_cast<double>(used))
        << size;
    EXPECT_LE(chunk, Mebibytes(32)) << size;
  }
}

TEST(AutoGrowthPolicyTest, AnIdleChunkIsCutWhileThereIsRoom) {
  const AutoGrowthPolicy policy{StrategyOptions()};
  const std::size_t room = Gibibytes(6);
  EXPECT_TRUE(policy.MayCut(Gibibytes(1), Mebibytes(2), room, 0));
  EXPECT_FALSE(policy.MayCut(Gibibytes(1), Mebibytes(2), room / 2, 0));
  // Already unused memory counts.
  EXPECT_FALSE(policy.MayCut(Gibibytes(1), Mebibytes(2), room, Mebibytes(3)));
  // Nearly all of it is used, or the chunk is for many blocks.
  EXPECT_TRUE(policy.MayCut(Mebibytes(36), Mebibytes(32), 0, Gibibytes(1)));
  EXPECT_FALSE(policy.MayCut(Mebibytes(38), Mebibytes(32), 0, 0));
  EXPECT_TRUE(policy.MayCut(Mebibytes(20), Mebibytes(2), 0, Gibibytes(1)));
  // The rules of the original ignore the room.
  EXPECT_TRUE(
      AutoGrowthPolicy(Exact()).MayCut(Gibibytes(1), Mebibytes(2), 0, 0));
}

// PyTorch's max_split_size (pytorch.md §2.1).
TEST(AutoGrowthPolicyTest, ChunksAboveTheSplitLimitStayWhole) {
  StrategyOptions options;
  options.Edit<AutoGrowthOptions>().auto_growth_max_split_size_in_mb = 64;
  const AutoGrowthPolicy policy(options);
  const std::size_t room = Gibibytes(80);
  EXPECT_FALSE(policy.StaysWhole(Mebibytes(64)));
  EXPECT_TRUE(policy.StaysWhole(Mebibytes(64) + 256));
  EXPECT_TRUE(policy.MayCut(Mebibytes(64), Mebibytes(2), room, 0));
  EXPECT_FALSE(policy.MayCut(Mebibytes(66), Mebibytes(64), room, 0));
  EXPECT_TRUE(policy.MayCut(Mebibytes(86), Mebibytes(66) + 256, room, 0));
  EXPECT_FALSE(policy.MayCut(Mebibytes(86), Mebibytes(66), room, 0));
}

// 3.3-2: with flag 0 every size is large.
TEST(AutoGrowthPolicyTest, Rule2WithoutPoolFlagEverythingIsLarge) {
  const AutoGrowthPolicy policy(Exact());
  EXPECT_EQ(policy.PoolOf(256), Pool::kLarge);
  EXPECT_EQ(policy.PoolOf(Gibibytes(1)), Pool::kLarge);
}

// 3.3-2: a size up to the flag is small.
TEST(AutoGrowthPolicyTest, Rule2SizesUpToThePoolFlagAreSmall) {
  const AutoGrowthPolicy policy(TwoPools());
  EXPECT_EQ(policy.PoolOf(Mebibytes(1)), Pool::kSmall);
  EXPECT_EQ(policy.PoolOf(Mebibytes(1) + 256), Pool::kLarge);
}

TEST(AutoGrowthPolicyTest, Rule4WithoutFlagsAChunkIsTheRequest) {
  EXPECT_THAT(Sizes(AutoGrowthPolicy(Exact()), 768), ElementsAre(768));
}

// 3.3-1, 3.3-4: max(request, chunk size); then the size that the request needs.
TEST(AutoGrowthPolicyTest, Rule4TheChunkFlagIsAMinimum) {
  StrategyOptions options;
  options.Edit<AutoGrowthOptions>().auto_growth_chunk_size_in_mb = 4;
  const AutoGrowthPolicy policy(options);
  EXPECT_THAT(Sizes(policy, 768), ElementsAre(Mebibytes(4), 768));
  EXPECT_THAT(Sizes(policy, Mebibytes(4)), ElementsAre(Mebibytes(4)));
  EXPECT_THAT(Sizes(policy, Mebibytes(5)), ElementsAre(Mebibytes(5)));
}

// 3.3-4: with pools, the pool's own flag replaces the chunk flag.
TEST(AutoGrowthPolicyTest, Rule4ThePoolsFlagsReplaceTheChunkFlag) {
  StrategyOptions options = TwoPools();
  options.Edit<AutoGrowthOptions>().auto_growth_chunk_size_in_mb = 64;
  options.Edit<AutoGrowthOptions>().small_pool_auto_growth_chunk_size_in_mb = 8;
  const AutoGrowthPolicy policy(options);
  EXPECT_THAT(Sizes(policy, 768), ElementsAre(Mebibytes(8), 768));
  // 0: no minimum.
  EXPECT_THAT(Sizes(policy, Mebibytes(3)), ElementsAre(Mebibytes(3)));
}

TEST(AutoGrowthPolicyTest, ThePreAllocationIsTheFirstChunkOfItsPool) {
  StrategyOptions options = TwoPools();
  options.Edit<AutoGrowthOptions>().small_pool_pre_alloc_in_mb = 16;
  options.Edit<AutoGrowthOptions>().large_pool_pre_alloc_in_mb = 128;
  options.Edit<AutoGrowthOptions>().large_pool_auto_growth_chunk_size_in_mb =
      32;
  const AutoGrowthPolicy policy(options);
  EXPECT_THAT(Sizes(policy, 768, true), ElementsAre(Mebibytes(16), 768));
  EXPECT_THAT(Sizes(policy, 768, false), ElementsAre(768));
  EXPECT_THAT(Sizes(policy, Mebibytes(3), true),
              ElementsAre(Mebibytes(128), Mebibytes(32), Mebibytes(3)));
  EXPECT_THAT(Sizes(policy, Mebibytes(3), false),
              ElementsAre(Mebibytes(32), Mebibytes(3)));
}

// The first growth of a pool without pre-allocation covered only the request.
TEST(AutoGrowthPolicyTest, TheFirstChunkIsNoSmallerThanTheLaterOnes) {
  StrategyOptions chunks;
  chunks.Edit<AutoGrowthOptions>().auto_growth_chunk_size_in_mb = 4;
  EXPECT_THAT(Sizes(AutoGrowthPolicy(chunks), 768, true),
              ElementsAre(Mebibytes(4), 768));
  StrategyOptions pools = TwoPools();
  pools.Edit<AutoGrowthOptions>().small_pool_auto_growth_chunk_size_in_mb = 8;
  pools.Edit<AutoGrowthOptions>().small_pool_pre_alloc_in_mb = 2;
  EXPECT_THAT(Sizes(AutoGrowthPolicy(pools), 768, true),
              ElementsAre(Mebibytes(8), 768));
}

TEST(AutoGrowthPolicyTest, PreAllocationNeedsPools) {
  StrategyOptions options = Exact();
  options.Edit<AutoGrowthOptions>().large_pool_pre_alloc_in_mb = 128;
  EXPECT_THAT(Sizes(AutoGrowthPolicy(options), 768, true), ElementsAre(768));
}

TEST(AutoGrowthPolicyTest, EveryListOfSizesFallsToTheRequest) {
  StrategyOptions chunks;
  chunks.Edit<AutoGrowthOptions>().auto_growth_chunk_size_in_mb = 7;
  StrategyOptions pools = TwoPools();
  pools.Edit<AutoGrowthOptions>().large_pool_pre_alloc_in_mb = 50;
  pools.Edit<AutoGrowthOptions>().large_pool_auto_growth_chunk_size_in_mb = 9;
  for (const StrategyOptions& options :
       {StrategyOptions(), Exact(), chunks, pools}) {
    const AutoGrowthPolicy policy(options);
    for (std::size_t size = 256; size <= std::size_t{1} << 47; size *= 2) {
      for (const std::size_t near : {size - 256, size, size + 256}) {
        if (near == 0) continue;
        for (const bool is_first : {false, true}) {
          const std::vector<std::size_t> sizes = Sizes(policy, near, is_first);
          EXPECT_EQ(sizes.back(), near);
          for (std::size_t i = 1; i < sizes.size(); ++i) {
            EXPECT_LT(sizes[i], sizes[i - 1]);
          }
        }
      }
    }
  }
}

TEST(AutoGrowthPolicyTest, OnlyTheGradedRuleGivesBackBeforeGrowth) {
  StrategyOptions options;
  options.Edit<AutoGrowthOptions>().auto_growth_give_back_limit = 0.5;
  EXPECT_EQ(AutoGrowthPolicy(options).give_back_limit(), 0.5);
  options.Edit<AutoGrowthOptions>().auto_growth_chunk_rule = "exact";
  EXPECT_EQ(AutoGrowthPolicy(options).give_back_limit(), 0);
}

// A graph pool holds its chunks, whatever the options say.
TEST(AutoGrowthPolicyTest, AStrategyThatHoldsChunksReleasesNone) {
  StrategyOptions options;
  options.Edit<AutoGrowthOptions>().free_idle_chunk = true;
  options.Edit<AutoGrowthOptions>().free_when_no_cache_hit = true;
  options.holds_chunks = true;
  const AutoGrowthPolicy policy(options);
  EXPECT_FALSE(policy.free_idle_chunk());
  EXPECT_FALSE(policy.free_when_no_cache_hit());
  EXPECT_EQ(policy.give_back_limit(), 0);
  EXPECT_EQ(policy.front_cache().max_block_bytes(), Kibibytes(64));
}

TEST(AutoGrowthPolicyTest, TheGranuleIsAPowerOfTwoFrom256On) {
  StrategyOptions options;
  EXPECT_EQ(AutoGrowthPolicy(options).granule_bytes(), 256U);
  options.Edit<AutoGrowthOptions>().auto_growth_granule_bytes = Kibibytes(64);
  EXPECT_EQ(AutoGrowthPolicy(options).granule_bytes(), Kibibytes(64));
  for (const std::uint64_t wrong : {0U, 128U, 768U}) {
    options.Edit<AutoGrowthOptions>().auto_growth_granule_bytes = wrong;
    EXPECT_THROW(AutoGrowthPolicy{options}, std::invalid_argument) << wrong;
  }
}

TEST(AutoGrowthPolicyTest, TheFrontCacheKeepsWhatItsModeSays) {
  StrategyOptions options;
  const AutoGrowthPolicy memory(options);
  EXPECT_EQ(memory.front_cache().max_block_bytes(), Kibibytes(64));
  EXPECT_EQ(memory.front_cache().LimitBytes(Mebibytes(2)), Kibibytes(512));
  EXPECT_EQ(memory.front_cache().LimitBytes(Mebibytes(8)), Kibibytes(512));
  EXPECT_EQ(memory.front_cache().LimitBytes(Mebibytes(10)), Kibibytes(128));
  EXPECT_EQ(memory.front_cache().LimitBytes(Mebibytes(640)), Kibibytes(2560));
  EXPECT_EQ(memory.front_cache().searches(), 2U);
  options.Edit<FrontCacheOptions>().front_cache = "speed";
  const AutoGrowthPolicy speed(options);
  EXPECT_EQ(speed.front_cache().max_block_bytes(), Mebibytes(8));
  EXPECT_EQ(speed.front_cache().LimitBytes(Mebibytes(640)), Mebibytes(640));
  EXPECT_EQ(speed.front_cache().searches(), 8U);
  options.Edit<FrontCacheOptions>().front_cache_max_block_bytes = 1000;
  EXPECT_EQ(AutoGrowthPolicy(options).front_cache().max_block_bytes(), 1000U);
  options.Edit<FrontCacheOptions>().front_cache = "off";
  EXPECT_EQ(AutoGrowthPolicy(options).front_cache().max_block_bytes(), 0U);
  options.Edit<FrontCacheOptions>().front_cache = "speed";
  options.Edit<AutoGrowthOptions>().free_idle_chunk = true;
  EXPECT_EQ(AutoGrowthPolicy(options).front_cache().max_block_bytes(), 0U);
}

TEST(AutoGrowthPolicyTest, NamesTheOptionThatIsWrong) {
  StrategyOptions cache;
  cache.Edit<FrontCacheOptions>().front_cache = "fast";
  EXPECT_THROW(AutoGrowthPolicy{cache}, std::invalid_argument);
  StrategyOptions rule;
  rule.Edit<AutoGrowthOptions>().auto_growth_chunk_rule = "fancy";
  EXPECT_THROW(AutoGrowthPolicy{rule}, std::invalid_argument);
  StrategyOptions chunk;
  chunk.Edit<AutoGrowthOptions>().auto_growth_chunk_size_in_mb =
      std::uint64_t{1} << 44;
  StrategyOptions pool = TwoPools();
  pool.Edit<AutoGrowthOptions>().large_pool_pre_alloc_in_mb = UINT64_MAX;
  const auto message = [](const StrategyOptions& options) -> std::string {
    try {
      const AutoGrowthPolicy policy(options);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(message(chunk),
              ::testing::StartsWith("auto_growth_chunk_size_in_mb: "));
  EXPECT_THAT(message(pool),
              ::testing::StartsWith("large_pool_pre_alloc_in_mb: "));
}

}  // namespace
}  // namespace strata
