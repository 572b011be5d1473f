// Growth and loans tell the planner of auto_growth that they belong to no step,
// so that it looks again soon.

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "strata/allocation/size.h"
#include "strata/tests/testing/test_place.h"

namespace strata {
namespace {

class AutoGrowthDisturbedTest : public ::testing::Test {
 protected:
  AutoGrowthDisturbedTest() {
    TestPlaceOptions options;
    options.strategy_options.front_cache = "off";
    place_ = std::make_unique<TestPlace>(options);
    chain_ = place_->AddChain();
    other_ = place_->AddChain();
  }

  std::uint64_t Planned() const {
    return chain_.auto_growth().stats().planned_hits;
  }
  void Step() {
    std::array<AllocationPtr, 10> live;
    for (std::size_t i = 0; i < live.size(); ++i) {
      live[i] = chain_->Allocate(Kibibytes(2 + 3 * i));
    }
  }
  // How many steps it takes until one is served from a plan, in the end, where
  // each plan soon meets `disturb`.
  template <class Disturb>
  int StepsUntilPlanned(Disturb disturb) {
    constexpr int kPlans = 14;
    for (int plan = 0;; ++plan) {
      int steps = 0;
      for (const std::uint64_t before = Planned(); Planned() == before;) {
        Step();
        ++steps;
      }
      if (plan == kPlans) return steps;
      disturb();
    }
  }

  std::unique_ptr<TestPlace> place_;
  mutable TestChain chain_;
  TestChain other_;
};

constexpr int kSoon = 10000;

TEST_F(AutoGrowthDisturbedTest, WhatBelongsToNoStepTakesLong) {
  { const AllocationPtr room = chain_->Allocate(Kibibytes(900)); }
  EXPECT_GT(StepsUntilPlanned([&] { chain_->Allocate(Kibibytes(500)); }),
            2 * kSoon);
}

TEST_F(AutoGrowthDisturbedTest, GrowthDoesNot) {
  EXPECT_LT(StepsUntilPlanned([&] {
              chain_->Allocate(Mebibytes(30));
              chain_->Release();
            }),
            kSoon);
}

TEST_F(AutoGrowthDisturbedTest, ALoanDoesNot) {
  AllocationPtr borrowed;
  { const AllocationPtr idle = chain_->Allocate(Mebibytes(4)); }
  EXPECT_LT(StepsUntilPlanned([&] {
              borrowed.reset();
              borrowed = other_->Allocate(Mebibytes(4));
            }),
            kSoon);
}

}  // namespace
}  // namespace strata
