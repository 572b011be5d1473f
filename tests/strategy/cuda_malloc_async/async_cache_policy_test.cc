#include "strata/strategy/cuda_malloc_async/async_cache_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "strata/base/size.h"
#include "strata/strategy/auto_growth/options.h"

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

StrategyOptions Bins() {
  StrategyOptions options;
  options.Edit<CudaMallocAsyncOptions>().cuda_malloc_async_bins = "pow2";
  return options;
}

std::string RefusalOf(const StrategyOptions& options) {
  try {
    const AsyncCachePolicy policy(options);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "none";
}

TEST(AsyncCachePolicyTest, ABinIsTheNextPowerOfTwo) {
  const AsyncCachePolicy policy(Bins());
  ASSERT_TRUE(policy.has_bins());
  EXPECT_EQ(policy.SizeFor(256), 256U);
  EXPECT_EQ(policy.SizeFor(257), 512U);
  EXPECT_EQ(policy.SizeFor(512), 512U);
  EXPECT_EQ(policy.SizeFor(Mebibytes(3)), Mebibytes(4));
  EXPECT_TRUE(policy.MayComeAgain(Mebibytes(4)));
  EXPECT_FALSE(policy.MayComeAgain(Mebibytes(3)));
  EXPECT_FALSE(policy.MayComeAgain(Gibibytes(2)));
}

TEST(AsyncCachePolicyTest, BinsOfAStepOfTheSystemAreLarge) {
  const AsyncCachePolicy policy(Bins());
  EXPECT_FALSE(policy.IsLargeBin(Mebibytes(1)));
  EXPECT_TRUE(policy.IsLargeBin(Mebibytes(2)));
  EXPECT_FALSE(AsyncCachePolicy(StrategyOptions()).IsLargeBin(Mebibytes(2)));
}

TEST(AsyncCachePolicyTest, AboveTheLargestBinSizesAreAsAsked) {
  const AsyncCachePolicy policy(Bins());
  EXPECT_EQ(policy.max_block_bytes(), Gibibytes(1));
  EXPECT_EQ(policy.SizeFor(Gibibytes(1) - 1), Gibibytes(1));
  EXPECT_EQ(policy.SizeFor(Gibibytes(1)), Gibibytes(1));
  EXPECT_EQ(policy.SizeFor(Gibibytes(1) + 1), Gibibytes(1) + 1);
  EXPECT_EQ(policy.SizeFor(SIZE_MAX), SIZE_MAX);
}

TEST(AsyncCachePolicyTest, TheLargestBinIsNoMoreThanABlockMayBe) {
  StrategyOptions options = Bins();
  options.Edit<FrontCacheOptions>().front_cache_max_block_bytes = Kibibytes(3);
  const AsyncCachePolicy policy(options);
  EXPECT_EQ(policy.max_block_bytes(), Kibibytes(2));
  EXPECT_EQ(policy.SizeFor(Kibibytes(2) - 1), Kibibytes(2));
  EXPECT_EQ(policy.SizeFor(Kibibytes(2) + 1), Kibibytes(2) + 1);
  options.Edit<FrontCacheOptions>().front_cache_max_block_bytes = SIZE_MAX;
  EXPECT_EQ(AsyncCachePolicy(options).SizeFor(Gibibytes(5)), Gibibytes(8));
}

TEST(AsyncCachePolicyTest, AllOfABinIsKeptFromItsFirstRequestOn) {
  const AsyncCachePolicy policy(Bins());
  EXPECT_EQ(policy.searches(), 1);
  EXPECT_EQ(policy.LimitBytes(Gibibytes(3)), Gibibytes(3));
}

TEST(AsyncCachePolicyTest, WithoutBinsTheFrontCacheIsAsItsModeSays) {
  StrategyOptions options;
  for (const char* mode : {"memory", "speed", "off"}) {
    options.Edit<FrontCacheOptions>().front_cache = mode;
    const AsyncCachePolicy policy(options);
    const FrontCachePolicy front(options);
    EXPECT_FALSE(policy.has_bins());
    EXPECT_EQ(policy.SizeFor(257), 257U);
    EXPECT_TRUE(policy.MayComeAgain(257));
    EXPECT_EQ(policy.max_block_bytes(), front.max_block_bytes());
    EXPECT_EQ(policy.searches(), front.searches());
    EXPECT_EQ(policy.LimitBytes(Gibibytes(3)), front.LimitBytes(Gibibytes(3)));
  }
}

TEST(AsyncCachePolicyTest, RefusesWhatIsUnknownAndWhatKeepsNothing) {
  StrategyOptions options;
  options.Edit<CudaMallocAsyncOptions>().cuda_malloc_async_bins = "pow3";
  EXPECT_THAT(RefusalOf(options),
              AllOf(HasSubstr("cuda_malloc_async_bins"), HasSubstr("'pow3'"),
                    HasSubstr("none, pow2")));
  options = Bins();
  EXPECT_EQ(RefusalOf(options), "none");
  options.Edit<FrontCacheOptions>().front_cache = "off";
  EXPECT_THAT(RefusalOf(options), AllOf(HasSubstr("cuda_malloc_async_bins"),
                                        HasSubstr("strata_front_cache=off")));
  options = Bins();
  options.Edit<FrontCacheOptions>().front_cache_max_block_bytes = 255;
  EXPECT_THAT(RefusalOf(options),
              AllOf(HasSubstr("cuda_malloc_async_bins"),
                    HasSubstr("strata_front_cache_max_block=255")));
  options.Edit<FrontCacheOptions>().front_cache_max_block_bytes = 256;
  EXPECT_EQ(RefusalOf(options), "none");
  options = Bins();
  options.Edit<AutoGrowthOptions>().free_idle_chunk = true;
  EXPECT_THAT(RefusalOf(options), AllOf(HasSubstr("cuda_malloc_async_bins"),
                                        HasSubstr("free_idle_chunk")));
}

}  // namespace
}  // namespace strata
