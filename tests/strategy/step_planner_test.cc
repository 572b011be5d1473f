#include "strata/strategy/step_planner.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace strata {
namespace {

// A strategy that finds a block for everything, as a planner sees it: at an
// address that depends on what is live, and nowhere twice at a time.
class StepPlannerTest : public ::testing::Test {
 protected:
  ~StepPlannerTest() override {
    while (!live_.empty()) Give();
    if (planner_->is_following()) {
      planner_->plan().ForEachTaken([](Block*) { FAIL(); });
    }
    planner_->End(records_);
    RecordSlab::Instance().Drain(records_);
  }

  void Use(bool is_on, bool has_cache) { planner_.emplace(is_on, has_cache); }

  void Take(std::size_t units) {
    ++takes_;
    const std::size_t bytes = units * 256;
    if (planner_->wants_memory() && provides_) Provide();
    const std::uint64_t live = live_.size();
    if (planner_->is_bound() && !planner_->is_following()) {
      planner_->Prepare(live, records_);
    }
    if (planner_->is_following()) {
      if (Block* block = planner_->plan().Take(bytes)) {
        ++planned_;
        live_.push_back(block);
        return;
      }
      Leave();
    }
    Block& block = blocks_.emplace_back();
    block.data = reinterpret_cast<std::byte*>((live + 1) << 30);
    block.size = bytes;
    live_.push_back(&block);
    planner_->NoteTake(block, bytes, records_);
    if (planner_->Note(bytes, live)) planner_->Turn(live);
  }
  // The last one.
  void Give() {
    Block* const block = live_.back();
    live_.pop_back();
    if (planner_->is_following()) {
      if (planner_->plan().Give(block)) return;
      Leave();
    }
    planner_->NoteGive(*block, records_);
  }
  void Provide() {
    StepPlan::Memory memory(RecordSlab::Instance());
    ASSERT_TRUE(memory.Fill(planner_->takes()));
    planner_->Provide(&memory);
  }
  // What is live, and of the plan, is from here on a block of the strategy.
  void Leave() {
    planner_->plan().ForEachTaken([&](Block* record) {
      Block& block = blocks_.emplace_back();
      block.Describe(*record);
      for (Block*& live : live_) {
        if (live == record) live = &block;
      }
      records_.Push(record);
    });
    planner_->Leave(records_);
  }
  void Step(std::size_t blocks = 100, std::size_t units = 1) {
    for (std::size_t i = 0; i < blocks; ++i) Take(units + i);
    while (!live_.empty()) Give();
  }
  void Steps(int count, std::size_t blocks = 100) {
    for (int i = 0; i < count; ++i) Step(blocks);
  }
  // Requests, in steps of which none repeats, until `is_so`, or so many.
  template <class Predicate>
  std::uint64_t TakesUntil(Predicate is_so, std::uint64_t most) {
    const std::uint64_t start = takes_;
    for (std::size_t units = 1; !is_so() && takes_ - start < most; ++units) {
      Step(100, units);
    }
    return takes_ - start;
  }

  std::optional<StepPlanner> planner_;
  std::deque<Block> blocks_;
  std::vector<Block*> live_;
  RecordList records_;
  std::uint64_t takes_ = 0;
  std::uint64_t planned_ = 0;
  bool provides_ = true;
};

TEST_F(StepPlannerTest, FollowsAStepThatRepeats) {
  Use(true, false);
  Steps(6);
  EXPECT_TRUE(planner_->is_following());
  const std::uint64_t before = planned_;
  Steps(5);
  EXPECT_EQ(planned_ - before, 500U);
}

TEST_F(StepPlannerTest, DoesNothingIfItIsOff) {
  Use(false, true);
  Steps(200);
  EXPECT_EQ(planned_, 0U);
  EXPECT_FALSE(planner_->sees_all());
}

TEST_F(StepPlannerTest, WaitsForItsMemory) {
  Use(true, false);
  provides_ = false;
  Steps(20);
  EXPECT_TRUE(planner_->wants_memory());
  EXPECT_EQ(planner_->takes(), 100U);
  EXPECT_EQ(planned_, 0U);
}

TEST_F(StepPlannerTest, LooksAwayIfThereIsNone) {
  Use(true, false);
  provides_ = false;
  Steps(20);
  planner_->Provide(nullptr);
  EXPECT_FALSE(planner_->wants_memory());
  provides_ = true;
  Steps(20);
  EXPECT_TRUE(planner_->is_following());
}

TEST_F(StepPlannerTest, LooksCloserWhereWhatItSeesRepeats) {
  Use(true, true);
  Step();
  EXPECT_FALSE(planner_->sees_all());
  Steps(3);
  EXPECT_TRUE(planner_->sees_all());
  EXPECT_FALSE(planner_->is_following());
  Steps(6);
  EXPECT_TRUE(planner_->is_following());
}

TEST_F(StepPlannerTest, LooksCloserNowAndThenWhereNothingRepeats) {
  Use(true, true);
  const auto looks = [&] { return planner_->sees_all(); };
  const auto looks_no_more = [&] { return !planner_->sees_all(); };
  std::uint64_t wait = TakesUntil(looks, 1U << 20);
  const std::uint64_t look = TakesUntil(looks_no_more, 1U << 20);
  EXPECT_LE(wait, 5000U);
  EXPECT_LE(look, 10000U);
  // Longer, to see the longest step twice that begins anywhere; less often.
  for (int i = 0; i < 2; ++i) {
    const std::uint64_t next_wait = TakesUntil(looks, 1U << 20);
    const std::uint64_t next_look = TakesUntil(looks_no_more, 1U << 20);
    EXPECT_GT(next_wait, 5 * wait);
    EXPECT_GE(next_look, 4 * StepWatch::kMostTakes);
    wait = next_wait;
  }
}

// Of which it sees nothing that repeats, until it looks closer.
TEST_F(StepPlannerTest, SoonFindsTheLongestStepBehindACache) {
  Use(true, true);
  constexpr std::uint64_t kSoon = 9 * StepWatch::kMostTakes;
  while (!planner_->is_following() && takes_ < kSoon) {
    for (std::size_t i = 1; i <= StepWatch::kMostTakes; ++i) {
      Take(planner_->sees_all() ? i : takes_);
    }
    while (!live_.empty()) Give();
  }
  EXPECT_TRUE(planner_->is_following());
}

// What was disturbed all the time may repeat as soon as nothing disturbs it.
TEST_F(StepPlannerTest, LooksAgainSoonAfterItWasDisturbed) {
  constexpr std::uint64_t kDisturbed = 1U << 20;
  const auto takes_until_followed = [&](bool was_disturbed) {
    Use(true, true);
    TakesUntil(
        [&] {
          if (was_disturbed) planner_->Disturb();
          return false;
        },
        kDisturbed);
    const std::uint64_t start = takes_;
    while (!planner_->is_following() && takes_ - start < 4 * kDisturbed) Step();
    return takes_ - start;
  };
  EXPECT_LT(takes_until_followed(true), kDisturbed * 3 / 4);
  planner_->End(records_);
  EXPECT_GT(takes_until_followed(false), kDisturbed);
}

TEST_F(StepPlannerTest, WhatDisturbsPlansDoesNotKeepItFromMakingOthers) {
  const auto takes_until_followed = [&](bool is_disturbed) {
    Use(true, false);
    for (int i = 0; i < 14; ++i) {
      while (!planner_->is_following()) Step();
      if (is_disturbed) planner_->Disturb();
      Step(30, 500);  // ends the plan
    }
    const std::uint64_t start = takes_;
    while (!planner_->is_following()) Step();
    return takes_ - start;
  };
  const std::uint64_t disturbed = takes_until_followed(true);
  planner_->End(records_);
  EXPECT_LT(4 * disturbed, takes_until_followed(false));
}

TEST_F(StepPlannerTest, APlanThatEndsSoonIsMadeAgainLater) {
  Use(true, false);
  const auto steps_until_followed = [&] {
    int steps = 0;
    for (; !planner_->is_following() && steps < 10000; ++steps) Step();
    return steps;
  };
  int last = steps_until_followed();
  for (int i = 0; i < 4; ++i) {
    Step(30, 500);  // something else
    ASSERT_FALSE(planner_->is_following());
    const int next = steps_until_followed();
    EXPECT_GT(next, last);
    last = next;
  }
}

TEST_F(StepPlannerTest, APlanThatLastedIsMadeAgainAtOnce) {
  Use(true, false);
  Steps(6);
  Steps(2 * static_cast<int>(StepPlanner::kManySteps));
  ASSERT_TRUE(planner_->is_following());
  Step(30, 500);
  Steps(8);
  EXPECT_TRUE(planner_->is_following());
  EXPECT_EQ(planner_->takes(), 100U);
}

// Twenty times the same is not yet the step, if something else follows.
TEST_F(StepPlannerTest, LooksForTheLongerStepAroundAShortOne) {
  Use(true, false);
  const auto whole = [&] {
    for (int i = 0; i < 20; ++i) Step(70);
    Step(90, 300);
  };
  for (int i = 0; i < 400 && planner_->takes() != 20 * 70 + 90; ++i) whole();
  EXPECT_EQ(planner_->takes(), 20U * 70 + 90);
  for (int i = 0; i < 4; ++i) whole();
  const std::uint64_t before = planned_;
  whole();
  EXPECT_EQ(planned_ - before, 20U * 70 + 90);
}

// It is then no part of a step, whatever it looks like.
TEST_F(StepPlannerTest, AStepThatIsLeftNowAndThenIsPlannedInBetween) {
  for (const bool has_cache : {false, true}) {
    SCOPED_TRACE(has_cache);
    Use(true, has_cache);
    planned_ = 0;
    takes_ = 0;
    for (int i = 0; i < 200; ++i) {
      Steps(50);
      Step(30, 500);
    }
    EXPECT_GT(planned_, takes_ / 2);
  }
}

}  // namespace
}  // namespace strata
