#include "strata/strategy/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "strata/tests/testing/layers/test_place.h"

namespace strata {
namespace {

TEST(StrategyRegistryTest, BuildsEveryStrategyByItsName) {
  EXPECT_THAT(StrategyNames(), ::testing::Contains("auto_growth"));
  EXPECT_THAT(StrategyNames(), ::testing::Contains("direct"));
  for (const std::string& name : StrategyNames()) {
    TestPlaceOptions options;
    options.strategy = name;
    TestPlace place(options);
    const TestChain chain = place.AddChain();
    // A strategy that streams share lies below its view.
    const Allocator* strategy = chain.strategy.get();
    if (strategy->name() == std::string("stream_view")) {
      strategy = strategy->underlying();
    }
    EXPECT_EQ(strategy->name(), name);
    // Building makes no device call except for the stream.
    EXPECT_EQ(place.DeviceCalls(), 1U);
  }
}

TEST(StrategyRegistryTest, AnUnknownNameListsTheKnownOnes) {
  PoolPlace place;
  try {
    StrategySource("bestest_fit", place.pool(), StrategyOptions());
    FAIL() << "there is no such strategy";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("'bestest_fit'"));
    for (const std::string& name : StrategyNames()) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr(name));
    }
  }
}

}  // namespace
}  // namespace strata
