#include "strata/strategy/step_watch.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace strata {
namespace {

// A program that only allocates and frees: how many blocks live, and how many
// requests it made until the watch saw a step that repeats.
class StepWatchTest : public ::testing::Test {
 protected:
  void Take(std::size_t bytes) {
    ++takes_;
    if (watch_.Note(bytes, live_) && !is_seen_) is_seen_ = watch_.Turn(live_);
    ++live_;
  }
  void Give(std::uint64_t blocks = 1) { live_ -= blocks; }
  // `blocks` of growing sizes, freed at the end.
  void Step(std::size_t blocks, std::size_t first_bytes = 256) {
    for (std::size_t i = 0; i < blocks; ++i) Take(first_bytes + 256 * i);
    Give(blocks);
  }
  // Steps until one is seen to repeat; 0: none of `most`.
  int StepsUntilSeen(std::size_t blocks, int most) {
    for (int i = 1; i <= most; ++i) {
      Step(blocks);
      if (is_seen_) return i;
    }
    return 0;
  }

  StepWatch watch_;
  std::uint64_t live_ = 10;
  std::uint64_t takes_ = 0;
  bool is_seen_ = false;
};

TEST_F(StepWatchTest, SeesAStepThatWasMadeTwice) {
  EXPECT_EQ(StepsUntilSeen(100, 10), 3);  // at its first request
  EXPECT_EQ(watch_.step_takes(), 100U);
  EXPECT_EQ(watch_.floor(), 10U);
}

TEST_F(StepWatchTest, TakesShortStepsTogether) {
  EXPECT_NE(StepsUntilSeen(3, 200), 0);
  EXPECT_GE(watch_.step_takes(), StepWatch::kFewestTakes);
  EXPECT_EQ(watch_.step_takes() % 3, 0U);
}

TEST_F(StepWatchTest, SeesNoStepOfOtherSizes) {
  for (std::size_t i = 0; i < 100; ++i) Step(100, 256 + 256 * i);
  EXPECT_FALSE(is_seen_);
}

TEST_F(StepWatchTest, SeesNoStepOfTheSameSizesInAnotherOrder) {
  for (int i = 0; i < 100; ++i) {
    for (std::size_t k = 0; k < 100; ++k) {
      Take(256 * (1 + (k * 7 + static_cast<std::size_t>(i)) % 100));
    }
    Give(100);
  }
  EXPECT_FALSE(is_seen_);
}

TEST_F(StepWatchTest, AStepBeginsWhereTheFewestLive) {
  live_ = 500;
  for (int i = 0; i < 10; ++i) Step(100);
  ASSERT_TRUE(is_seen_);
  // From somewhere within, other steps reach lower.
  watch_.Pause(0, 0, 0);
  is_seen_ = false;
  for (std::size_t i = 0; i < 50; ++i) Take(256 + 256 * i);
  Give(100);
  for (int i = 0; i < 10; ++i) Step(100);
  EXPECT_TRUE(is_seen_);
  EXPECT_EQ(watch_.floor(), 450U);
}

TEST_F(StepWatchTest, WhatStaysLiveRaisesTheFloor) {
  Step(100);
  live_ += 50;
  EXPECT_NE(StepsUntilSeen(100, 50), 0);
  EXPECT_EQ(watch_.floor(), 60U);
}

TEST_F(StepWatchTest, LaterAFloorIsWaitedForLonger) {
  Step(100);
  live_ += 50;
  // Longer than the first window.
  EXPECT_NE(StepsUntilSeen(3000, 50), 0);
  EXPECT_EQ(watch_.step_takes(), 3000U);
}

// Such a plan would be too large.
TEST_F(StepWatchTest, SeesNoStepThatIsTooLong) {
  EXPECT_EQ(StepsUntilSeen(StepWatch::kMostTakes + 1, 10), 0);
}

// Parts that differ, each of which begins where the fewest live.
TEST_F(StepWatchTest, SeesAStepOfSeveralLaps) {
  for (int i = 0; i < 4 && !is_seen_; ++i) {
    Step(100);
    Step(150, 512);
    Step(70, 1024);
  }
  EXPECT_TRUE(is_seen_);
  EXPECT_EQ(watch_.step_takes(), 320U);
}

// One of 65 is not a step.
TEST_F(StepWatchTest, SeesNoStepOfTooManyLaps) {
  for (const std::size_t laps :
       {StepWatch::kMostLaps, StepWatch::kMostLaps + 1}) {
    watch_ = StepWatch();
    is_seen_ = false;
    for (int i = 0; i < 4; ++i) {
      for (std::size_t lap = 0; lap < laps; ++lap) Step(64, 256 + 256 * lap);
    }
    EXPECT_EQ(is_seen_, laps == StepWatch::kMostLaps);
  }
}

TEST_F(StepWatchTest, SeesNothingWhileItPauses) {
  watch_.Pause(5000, 0, 0);
  EXPECT_EQ(StepsUntilSeen(100, 50), 0);
  EXPECT_NE(StepsUntilSeen(100, 10), 0);
}

// A part repeats twenty times before the rest of the step.
TEST_F(StepWatchTest, AfterAPauseItLooksForLongerSteps) {
  watch_.Pause(1, 100, 40);
  for (int whole = 0; whole < 4 && !is_seen_; ++whole) {
    for (int i = 0; i < 20; ++i) Step(100);
    Step(90, 512);
  }
  EXPECT_TRUE(is_seen_);
  EXPECT_EQ(watch_.step_takes(), 2090U);
}

TEST_F(StepWatchTest, AfterAPauseAShortStepHasToRepeatMoreOften) {
  watch_.Pause(1, 100, 40);
  const int steps = StepsUntilSeen(100, 100);
  EXPECT_GE(steps, 40);
  EXPECT_LE(steps, 50);
}

}  // namespace
}  // namespace strata
