#include "strata/strategy/strategy_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "strata/strategy/auto_growth/options.h"
#include "strata/strategy/bfc/limits.h"
#include "strata/strategy/blocks/front_cache_policy.h"
#include "strata/strategy/buddy/buddy_sizes.h"
#include "strata/strategy/cuda_malloc_async/options.h"
#include "strata/strategy/pool/options.h"
#include "strata/strategy/registry.h"
#include "strata/strategy/virtual_memory/vmm_policy.h"

namespace strata {
namespace {

using ::testing::HasSubstr;

template <class Act>
std::string CheckError(Act act) {
  try {
    act();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "none";
}

TEST(StrategyOptionsTest, HasTheDefaultsOfTheFolders) {
  const StrategyOptions options;
  EXPECT_EQ(options.Get<FrontCacheOptions>().front_cache, "memory");
  EXPECT_EQ(options.Get<AutoGrowthOptions>().auto_growth_give_back_limit, 1.0);
  EXPECT_EQ(options.Get<VirtualMemoryOptions>().vmm_handle_max_bytes,
            std::uint64_t{64} << 20);
  EXPECT_EQ(options.Get<CudaMallocAsyncOptions>()
                .cuda_memory_async_pool_release_threshold,
            UINT64_MAX);
  EXPECT_TRUE(options.Get<BfcFlags>().bfc_allow_growth);
  EXPECT_EQ(options.Get<BuddyOptions>().fraction_of_gpu_memory_to_use, 0.92);
  EXPECT_EQ(options.Get<PoolOptions>().pool_size_limit, 100U);
  CheckStrategyOptions(options);
}

TEST(StrategyOptionsTest, ACopyHasOptionsOfItsOwn) {
  StrategyOptions options;
  options.Edit<PoolOptions>().pool_size_limit = 3;
  StrategyOptions copy = options;
  copy.Edit<PoolOptions>().pool_size_limit = 4;
  EXPECT_EQ(options.Get<PoolOptions>().pool_size_limit, 3U);
  EXPECT_EQ(copy.Get<PoolOptions>().pool_size_limit, 4U);
  EXPECT_EQ(StrategyOptions().Get<PoolOptions>().pool_size_limit, 100U);
}

TEST(StrategyOptionsTest, EachFolderChecksItsOptions) {
  StrategyOptions options;
  options.Edit<AutoGrowthOptions>().auto_growth_chunk_rule = "any";
  EXPECT_THAT(CheckError([&] { CheckStrategyOptions(options); }),
              HasSubstr("auto_growth_chunk_rule: unknown rule 'any'"));
  options = StrategyOptions();
  options.Edit<AutoGrowthOptions>().small_pool_size_in_mb = UINT64_MAX;
  EXPECT_THAT(CheckError([&] { CheckStrategyOptions(options); }),
              HasSubstr("small_pool_size_in_mb: 18446744073709551615 MiB is "
                        "more than can be addressed"));
  options = StrategyOptions();
  options.Edit<PoolOptions>().pool_rounder = "any";
  EXPECT_THAT(CheckError([&] { CheckStrategyOptions(options); }),
              HasSubstr("pool_rounder: unknown rounder 'any'"));
  options = StrategyOptions();
  options.Edit<CudaMallocAsyncOptions>().cuda_malloc_async_pool = "any";
  EXPECT_THAT(CheckError([&] { CheckStrategyOptions(options); }),
              HasSubstr("cuda_malloc_async_pool: unknown pool 'any'"));
}

TEST(StrategyTraitsTest, AreThoseOfTheTable) {
  EXPECT_EQ(TraitsOf("auto_growth"), kPlainStrategy);
  EXPECT_EQ(TraitsOf("direct"), kHoldsNothing);
  EXPECT_EQ(TraitsOf("cuda_malloc_async"), kPoolsInDriver | kNoLegacyIpcMemory);
  EXPECT_EQ(TraitsOf("virtual_memory"), kNoLegacyIpcMemory);
  EXPECT_EQ(TraitsOf("none such"), kPlainStrategy);
}

TEST(StrategyTraitsTest, ALimitBoundsTheFirstMemoryOfTheStrategyAlone) {
  StrategyOptions options;
  options.Edit<AutoGrowthOptions>().auto_growth_chunk_size_in_mb = 65;
  options.Edit<BuddyOptions>().initial_gpu_memory_in_mb = 65;
  options.Edit<CudaMallocAsyncOptions>().cuda_malloc_async_preallocate_bytes =
      (std::uint64_t{64} << 20) + 1;
  for (const char* strategy :
       {"auto_growth", "naive_best_fit", "thread_local", "cuda_malloc_async"}) {
    const auto check = [&](std::uint64_t limit_mb) {
      return CheckError(
          [&] { CheckSelectedStrategy(strategy, options, limit_mb); });
    };
    EXPECT_THAT(check(64), HasSubstr("contradicts gpu_memory_limit_mb=64"));
    EXPECT_EQ(check(65), "none") << strategy;
    EXPECT_EQ(check(0), "none") << strategy;
  }
  EXPECT_EQ(CheckError([&] { CheckSelectedStrategy("bfc", options, 1); }),
            "none");
}

}  // namespace
}  // namespace strata
