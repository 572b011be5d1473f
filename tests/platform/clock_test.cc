#include "strata/platform/clock.h"

#include <gtest/gtest.h>

namespace strata {
namespace {

TEST(ClockTest, SteadyClockMovesForwardOnly) {
  const auto first = Clock::Steady().Now();
  auto last = first;
  while (last == first) {
    const auto now = Clock::Steady().Now();
    ASSERT_GE(now, last);
    last = now;
  }
  EXPECT_GT(last, first);
}

TEST(ClockTest, SteadyClockIsOneObject) {
  EXPECT_EQ(&Clock::Steady(), &Clock::Steady());
}

}  // namespace
}  // namespace strata
