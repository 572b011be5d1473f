#include "strata/facade/settings/strategy_flags.h"

#include <gtest/gtest.h>

#include "strata/strategy/auto_growth/options.h"
#include "strata/strategy/bfc/limits.h"
#include "strata/strategy/pool/options.h"

namespace strata {
namespace {

StrategyFlags Flags() {
  StrategyFlags flags;
  flags.auto_growth_chunk_size_in_mb = 7;
  flags.free_idle_chunk = true;
  flags.bfc_memory_fraction = "0.5";
  flags.bfc_two_ended = true;
  flags.bfc_placement = "fast";
  flags.pool_size_limit = 3;
  return flags;
}

TEST(StrategyFlagsTest, EachStrategyReceivesItsOptions) {
  const StrategyOptions options = Flags().ByType();
  EXPECT_EQ(options.Get<AutoGrowthOptions>().auto_growth_chunk_size_in_mb, 7U);
  EXPECT_TRUE(options.Get<AutoGrowthOptions>().free_idle_chunk);
  EXPECT_EQ(options.Get<BfcFlags>().bfc_memory_fraction, "0.5");
  EXPECT_EQ(options.Get<PoolOptions>().pool_size_limit, 3U);
}

TEST(StrategyFlagsTest, OptionsAboutDevicesDoNotApplyToTheHost) {
  const StrategyOptions on_host = Flags().ByType(/*is_on_host=*/true);
  EXPECT_EQ(on_host.Get<AutoGrowthOptions>().auto_growth_chunk_size_in_mb, 0U);
  EXPECT_FALSE(on_host.Get<AutoGrowthOptions>().free_idle_chunk);
  EXPECT_EQ(on_host.Get<BfcFlags>().bfc_memory_fraction, "");
  EXPECT_FALSE(on_host.Get<BfcFlags>().bfc_two_ended);
  EXPECT_EQ(on_host.Get<BfcFlags>().bfc_placement, "fast");
  EXPECT_EQ(on_host.Get<PoolOptions>().pool_size_limit, 3U);
}

}  // namespace
}  // namespace strata
