#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "strata/base/size.h"
#include "strata/strategy/registry.h"
#include "strata/tests/testing/layers/live_ranges.h"
#include "strata/tests/testing/layers/test_place.h"
#include "strata/tests/testing/models/facade_model.h"
#include "strata/tests/testing/models/facade_settings.h"
#include "strata/tests/testing/models/stress_settings.h"

namespace strata {
namespace {

constexpr std::uint64_t kModelOperations = 10000;
constexpr std::uint64_t kBetweenDeepChecks = 64;

// Strategy and further options.
using Setting = std::tuple<std::string, std::string>;

class StressOperationsTest : public ::testing::TestWithParam<Setting> {};

TEST_P(StressOperationsTest, FacadeDoesWhatANaiveModelSays) {
  const std::uint64_t operations = StressOperations(kModelOperations);
  FacadeModelOptions options;
  options.facade = "allocator_strategy=" + std::get<0>(GetParam()) + " " +
                   std::get<1>(GetParam());
  options.seed = StressSeed();
  FacadeModel model(options);
  for (std::uint64_t i = 0; i < operations && !HasFailure(); ++i) model.Step();
  // Without a refusal, exhaustion was not tested.
  EXPECT_GT(model.refusals(), 0U);
  model.FreeEverything();
  model.ExpectUsable();
  model.FreeEverything();
  model.Finish();
  EXPECT_EQ(model.platform().LeakReport(), "");
}

std::vector<Setting> Settings() {
  std::vector<Setting> settings;
  for (const std::string& strategy : StrategyNames()) {
    for (const std::string& options : FacadeSettings(strategy)) {
      settings.emplace_back(strategy, options);
    }
  }
  return settings;
}

INSTANTIATE_TEST_SUITE_P(Settings, StressOperationsTest,
                         ::testing::ValuesIn(Settings()),
                         [](const auto& setting) {
                           return NameOf(std::get<0>(setting.param)) + "_" +
                                  NameOf(std::get<1>(setting.param));
                         });

// Chains built by hand, so that the test can access the strategy.
class StressChainsTest : public ::testing::TestWithParam<bool> {
 protected:
  struct Live {
    AllocationPtr allocation;
    std::size_t chain = 0;
  };

  std::size_t Below(std::size_t bound) { return engine_() % bound; }
  void Allocate(const TestChain& chain, std::size_t index);
  void Free(std::size_t index);
  void Step();
  // Checks the strategies, their sums, and the pool.
  void CheckDeeply();

  std::mt19937_64 engine_{StressSeed()};
  std::unique_ptr<TestPlace> place_;
  std::vector<TestChain> chains_;
  std::vector<Live> live_;
  LiveRanges ranges_;
};

void StressChainsTest::Allocate(const TestChain& chain, std::size_t index) {
  Request request;
  request.bytes = static_cast<std::size_t>(
      std::exp2(static_cast<double>(Below(2500)) / 100.0));
  const std::array<std::uint32_t, 4> flags = {0, 0, kLongLived, kNoGrowth};
  request.flags = flags[Below(flags.size())];
  Failure failure;
  AllocationPtr made = chain->AllocateOrNull(request, failure);
  if (made == nullptr) return;
  ASSERT_GE(made->size(), request.bytes);
  ASSERT_TRUE(ranges_.Add(*made)) << "handed out twice";
  live_.push_back(Live{std::move(made), index});
}

void StressChainsTest::Free(std::size_t index) {
  ASSERT_TRUE(ranges_.Remove(*live_[index].allocation));
  live_[index] = std::move(live_.back());
  live_.pop_back();
}

void StressChainsTest::Step() {
  const std::size_t choice = Below(100);
  const std::size_t index = Below(chains_.size());
  if (choice < 52) {
    Allocate(chains_[index], index);
  } else if (choice < 97) {
    if (!live_.empty()) Free(Below(live_.size()));
  } else if (choice < 99) {
    chains_[index]->Release();
  } else {
    while (live_.size() > 8) Free(Below(live_.size()));
  }
}

void StressChainsTest::CheckDeeply() {
  std::vector<std::uint64_t> in_use(chains_.size());
  for (const Live& live : live_) {
    in_use[live.chain] += live.allocation->block()->size;
  }
  std::uint64_t reserved = place_->pool()->stats().idle_bytes;
  for (std::size_t i = 0; i < chains_.size(); ++i) {
    const AutoGrowthAllocator& strategy = chains_[i].auto_growth();
    ASSERT_TRUE(strategy.IsConsistent()) << "chain " << i;
    const Stats stats = strategy.stats();
    ASSERT_EQ(stats.in_use_bytes, in_use[i]) << "chain " << i;
    reserved += stats.reserved_bytes;
  }
  ASSERT_EQ(place_->pool()->reserved_bytes(), reserved);
}

TEST_P(StressChainsTest, StrategyStaysConsistentInItself) {
  const std::uint64_t operations = StressOperations(kModelOperations);
  TestPlaceOptions options;
  if (GetParam()) options.decorators = DecoratorOptions();
  place_ = std::make_unique<TestPlace>(options);
  for (int i = 0; i < 3; ++i) chains_.push_back(place_->AddChain());
  for (std::uint64_t i = 0; i < operations && !HasFailure(); ++i) {
    SCOPED_TRACE(::testing::Message()
                 << "seed " << StressSeed() << ", operation " << i);
    Step();
    if (i % kBetweenDeepChecks == 0) CheckDeeply();
  }
  while (!live_.empty() && !HasFatalFailure()) Free(live_.size() - 1);
  CheckDeeply();
  for (const TestChain& chain : chains_) chain->Release();
  place_->pool()->Release();
  EXPECT_EQ(place_->pool()->reserved_bytes(), 0U);
  EXPECT_EQ(LeakedAllocations(place_->device()), 0U);
}

INSTANTIATE_TEST_SUITE_P(Decorators, StressChainsTest, ::testing::Bool(),
                         [](const auto& decorated) {
                           return decorated.param ? "Decorated" : "Bare";
                         });

}  // namespace
}  // namespace strata
