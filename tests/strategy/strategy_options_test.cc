#include "strata/strategy/strategy_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "strata/strategy/registry.h"

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
  EXPECT_EQ(options.front_cache, "memory");
  EXPECT_EQ(options.auto_growth_give_back_limit, 1.0);
  EXPECT_EQ(options.vmm_handle_max_bytes, std::uint64_t{64} << 20);
  EXPECT_EQ(options.cuda_memory_async_pool_release_threshold, UINT64_MAX);
  EXPECT_TRUE(options.bfc_allow_growth);
  EXPECT_EQ(options.fraction_of_gpu_memory_to_use, 0.92);
  EXPECT_EQ(options.pool_size_limit, 100U);
  CheckStrategyOptions(options);
}

TEST(StrategyOptionsTest, EachFolderChecksItsOptions) {
  StrategyOptions options;
  options.auto_growth_chunk_rule = "any";
  EXPECT_THAT(CheckError([&] { CheckStrategyOptions(options); }),
              HasSubstr("auto_growth_chunk_rule: unknown rule 'any'"));
  options = StrategyOptions();
  options.small_pool_size_in_mb = UINT64_MAX;
  EXPECT_THAT(CheckError([&] { CheckStrategyOptions(options); }),
              HasSubstr("small_pool_size_in_mb: 18446744073709551615 MiB is "
                        "more than can be addressed"));
  options = StrategyOptions();
  options.pool_rounder = "any";
  EXPECT_THAT(CheckError([&] { CheckStrategyOptions(options); }),
              HasSubstr("pool_rounder: unknown rounder 'any'"));
  options = StrategyOptions();
  options.cuda_malloc_async_pool = "any";
  EXPECT_THAT(CheckError([&] { CheckStrategyOptions(options); }),
              HasSubstr("cuda_malloc_async_pool: unknown pool 'any'"));
}

TEST(StrategyOptionsTest, OptionsAboutDevicesDoNotApplyToTheHost) {
  StrategyOptions options;
  options.auto_growth_chunk_size_in_mb = 7;
  options.free_idle_chunk = true;
  options.bfc_memory_fraction = "0.5";
  options.bfc_two_ended = true;
  options.bfc_placement = "fast";
  options.pool_size_limit = 3;
  const StrategyOptions on_host = OnHost(options);
  EXPECT_EQ(on_host.auto_growth_chunk_size_in_mb, 0U);
  EXPECT_FALSE(on_host.free_idle_chunk);
  EXPECT_EQ(on_host.bfc_memory_fraction, "");
  EXPECT_FALSE(on_host.bfc_two_ended);
  EXPECT_EQ(on_host.bfc_placement, "fast");
  EXPECT_EQ(on_host.pool_size_limit, 3U);
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
  options.auto_growth_chunk_size_in_mb = 65;
  options.initial_gpu_memory_in_mb = 65;
  options.cuda_malloc_async_preallocate_bytes = (std::uint64_t{64} << 20) + 1;
  for (const char* strategy :
       {"auto_growth", "naive_best_fit", "thread_local", "cuda_malloc_async"}) {
    const auto check = [&](std::uint64_t limit_mb) {
      return CheckError([&] { CheckLimit(strategy, options, limit_mb); });
    };
    EXPECT_THAT(check(64), HasSubstr("contradicts gpu_memory_limit_mb=64"));
    EXPECT_EQ(check(65), "none") << strategy;
    EXPECT_EQ(check(0), "none") << strategy;
  }
  EXPECT_EQ(CheckError([&] { CheckLimit("bfc", options, 1); }), "none");
}

}  // namespace
}  // namespace strata
