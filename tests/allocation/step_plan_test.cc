#include "strata/allocation/step_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

#include "strata/tests/testing/heap_call_counter.h"

namespace strata {
namespace {

constexpr std::size_t kUnit = 256;

// Blocks at made-up addresses, of a slab of the test's own records.
class StepPlanTest : public ::testing::Test {
 protected:
  ~StepPlanTest() override {
    Clear();
    GiveRecords();
    EXPECT_EQ(RecordSlab::Instance().taken(), taken_);
  }

  // Blank again, as others expect them.
  void GiveRecords() {
    while (Block* record = records_.Pop()) RecordSlab::Instance().Give(record);
  }
  void Use(StepPlan::Count takes) {
    StepPlan::Memory memory(RecordSlab::Instance());
    ASSERT_TRUE(memory.Fill(takes));
    plan_.Use(memory);
  }
  // A block of the strategy, of `units` at unit `at`.
  Block& At(std::size_t at, std::size_t units) {
    Block& block = blocks_.emplace_back();
    block.data = Address(at);
    block.size = units * kUnit;
    block.pool = 1;
    return block;
  }
  static std::byte* Address(std::size_t unit) {
    return reinterpret_cast<std::byte*>((unit + 1) * kUnit);
  }
  bool Take(Block& block) { return plan_.NoteTake(block, block.size); }
  bool Give(const Block& block) { return plan_.NoteGive(block); }
  bool Close() { return plan_.Close(records_); }
  // Takes back what is live, too.
  void Clear() {
    RecordList live;
    plan_.ForEachTaken([&](Block* record) { live.Push(record); });
    plan_.Clear(records_);
    while (Block* record = live.Pop()) records_.Push(record);
    const auto is_own = [&](const Block* record) {
      return std::any_of(blocks_.begin(), blocks_.end(),
                         [&](const Block& own) { return &own == record; });
    };
    RecordList slab;
    while (Block* record = records_.Pop()) {
      if (!is_own(record)) slab.Push(record);
    }
    std::swap(records_, slab);
  }
  // What it serves for so many units.
  Block* Next(std::size_t units) { return plan_.Take(units * kUnit); }

  std::vector<Block*> Given() {
    std::vector<Block*> blocks;
    plan_.ForEachGiven([&](Block* block) { blocks.push_back(block); });
    return blocks;
  }
  // The units of what is live and was not when the step began.
  std::vector<std::byte*> Taken() {
    std::vector<std::byte*> live;
    plan_.ForEachTaken([&](Block* record) { live.push_back(record->data); });
    return live;
  }

  const std::size_t taken_ = RecordSlab::Instance().taken();
  std::deque<Block> blocks_;
  RecordList records_;
  StepPlan plan_;
};

TEST_F(StepPlanTest, ServesTheStepThatWasRecorded) {
  Use(2);
  Block& a = At(0, 4);
  Block& b = At(4, 2);
  ASSERT_TRUE(Take(a) && Take(b) && Give(a) && Give(b));
  ASSERT_TRUE(Close());
  for (int step = 0; step < 3; ++step) {
    Block* first = Next(4);
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(first->data, a.data);
    EXPECT_EQ(first->size, a.size);
    EXPECT_EQ(first->pool, a.pool);
    EXPECT_EQ(first->flags, kBlockLive);
    Block* second = Next(2);
    ASSERT_NE(second, nullptr);
    EXPECT_EQ(second->data, b.data);
    EXPECT_TRUE(plan_.Give(first));
    EXPECT_EQ(first->flags, 0);
    EXPECT_TRUE(plan_.Give(second));
  }
  EXPECT_EQ(plan_.steps(), 3U);
  EXPECT_EQ(plan_.takes(), 6U);
  EXPECT_EQ(plan_.gives(), 6U);
}

TEST_F(StepPlanTest, ServesNothingElse) {
  Use(2);
  Block& a = At(0, 4);
  Block& b = At(4, 2);
  ASSERT_TRUE(Take(a) && Take(b) && Give(a) && Give(b) && Close());
  EXPECT_EQ(Next(2), nullptr);
  Block* first = Next(4);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(Next(4), nullptr);
  EXPECT_FALSE(plan_.Give(first));  // b comes before
  Block* second = Next(2);
  ASSERT_NE(second, nullptr);
  EXPECT_FALSE(plan_.Give(second));  // a goes before
  EXPECT_EQ(second->flags, kBlockLive);
  EXPECT_EQ(Next(4), nullptr);
  EXPECT_EQ(plan_.takes(), 2U);
  EXPECT_EQ(plan_.gives(), 0U);
}

// The request was for less than the block: what was left over was too little.
TEST_F(StepPlanTest, ARequestIsKnownByWhatItAskedFor) {
  Use(1);
  Block& a = At(0, 5);
  ASSERT_TRUE(plan_.NoteTake(a, 4 * kUnit) && Give(a) && Close());
  EXPECT_EQ(Next(5), nullptr);
  Block* block = Next(4);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(block->size, 5 * kUnit);
}

TEST_F(StepPlanTest, TheSameMemoryServesSeveralRequests) {
  Use(3);
  Block& small = At(0, 1);
  Block& large = At(0, 9);
  ASSERT_TRUE(Take(small) && Give(small) && Take(large) && Give(large) &&
              Take(small) && Give(small) && Close());
  EXPECT_EQ(Next(1)->size, kUnit);
}

TEST_F(StepPlanTest, IsNotClosedIfMoreIsLiveThanBefore) {
  Use(2);
  Block& a = At(0, 4);
  ASSERT_TRUE(Take(a) && Take(At(4, 2)) && Give(a));
  EXPECT_FALSE(Close());
}

TEST_F(StepPlanTest, IsNotClosedIfLessIsLiveThanBefore) {
  Use(2);
  Block& a = At(0, 4);
  ASSERT_TRUE(Take(a) && Give(a) && Give(At(4, 2)));
  EXPECT_FALSE(Close());
}

TEST_F(StepPlanTest, IsNotClosedIfWhatLivesOnHasMoved) {
  Use(1);
  ASSERT_TRUE(Give(At(0, 4)) && Take(At(4, 4)));
  EXPECT_FALSE(Close());
}

TEST_F(StepPlanTest, IsNotClosedIfWhatLivesOnIsLarger) {
  Use(1);
  ASSERT_TRUE(Give(At(0, 4)) && Take(At(0, 5)));
  EXPECT_FALSE(Close());
}

TEST_F(StepPlanTest, WhatLivesFromStepToStepKeepsItsRecord) {
  Use(1);
  Block& now = At(0, 4);
  ASSERT_TRUE(Give(At(0, 4)) && Take(now) && Close());
  EXPECT_EQ(Next(4), nullptr);
  ASSERT_TRUE(plan_.Give(&now));
  EXPECT_EQ(Next(4), &now);
  EXPECT_EQ(plan_.steps(), 1U);
}

TEST_F(StepPlanTest, HasNoMoreRequestsThanItWasMadeFor) {
  Use(1);
  Block& a = At(0, 4);
  ASSERT_TRUE(Take(a) && Give(a));
  EXPECT_FALSE(Take(a));
  EXPECT_FALSE(Give(a));
}

// Sizes that were rounded up past the end of the address space.
TEST_F(StepPlanTest, ServesNothingForNoBytes) {
  Use(1);
  Block& a = At(0, 4);
  ASSERT_TRUE(Take(a) && Give(a) && Close());
  EXPECT_EQ(Next(0), nullptr);
  ASSERT_NE(Next(4), nullptr);  // a free is next
  EXPECT_EQ(Next(0), nullptr);
  EXPECT_EQ(plan_.Take(SIZE_MAX), nullptr);
}

// More than an entry can say.
TEST_F(StepPlanTest, HasNoBlockOf512Gibibytes) {
  Use(1);
  Block& a = At(0, std::size_t{1} << 31);
  EXPECT_FALSE(Take(a));
  EXPECT_FALSE(Give(a));
}

// After each of its events: what lives and did not at first, and the other way
// round. Block c lives from step to step, a and b within one.
TEST_F(StepPlanTest, SaysWhatIsLiveWhereItEnds) {
  const std::pair<std::vector<std::byte*>, bool> expected[] = {
      {{}, false},
      {{Address(8)}, false},             // a, behind c
      {{Address(8)}, true},              // c is given
      {{Address(0), Address(8)}, true},  // b, which takes its memory
      {{Address(0)}, true},              // a is given
      {{}, true},                        // b too
      {{}, false},                       // c again
  };
  for (std::size_t events = 0; events < std::size(expected); ++events) {
    SCOPED_TRACE(events);
    Use(3);
    Block& a = At(8, 2);
    Block& b = At(0, 1);
    Block& c = At(0, 8);
    ASSERT_TRUE(Take(a) && Give(At(0, 8)) && Take(b) && Give(a) && Give(b) &&
                Take(c) && Close());
    Block* taken_a = nullptr;
    Block* taken_b = nullptr;
    const std::function<bool()> served[] = {
        [&] { return (taken_a = Next(2)) != nullptr; },
        [&] { return plan_.Give(&c); },
        [&] { return (taken_b = Next(1)) != nullptr; },
        [&] { return plan_.Give(taken_a); },
        [&] { return plan_.Give(taken_b); },
        [&] { return Next(8) == &c; },
    };
    for (std::size_t i = 0; i < events; ++i) ASSERT_TRUE(served[i]());
    const std::vector<Block*> given = Given();
    EXPECT_EQ(given, expected[events].second ? std::vector<Block*>{&c}
                                             : std::vector<Block*>{});
    EXPECT_EQ(Taken(), expected[events].first);
    // For two that may be live at once, and one that may be given.
    EXPECT_EQ(plan_.spare_count(), 3U);
    EXPECT_EQ(plan_.spare_records().size(), 3U);
    Clear();
  }
}

TEST_F(StepPlanTest, IsMadeAgainWithoutTheHeap) {
  Use(8);
  Clear();
  GiveRecords();
  Block& a = At(0, 4);
  const HeapCallCounter heap;
  EXPECT_FALSE(plan_.UseAgain(RecordSlab::Instance(), 9));
  ASSERT_TRUE(plan_.UseAgain(RecordSlab::Instance(), 1));
  ASSERT_TRUE(Take(a) && Give(a));
  EXPECT_FALSE(Take(a));
  EXPECT_TRUE(Close());
  EXPECT_EQ(Next(4)->data, a.data);
  EXPECT_EQ(heap.calls(), 0U);
}

TEST_F(StepPlanTest, IsNotMadeAgainWithoutRecords) {
  Use(8);
  Clear();
  RecordList stock;
  RecordSlab::Instance().FillFromStock(stock, SIZE_MAX);
  EXPECT_FALSE(plan_.UseAgain(RecordSlab::Instance(), 8));
  RecordSlab::Instance().Drain(stock);
}

TEST_F(StepPlanTest, WithoutHostMemoryThereIsNone) {
  if (!HeapFailure::is_possible()) GTEST_SKIP() << "no heap failures here";
  for (std::uint64_t nth = 1; nth <= 2; ++nth) {
    StepPlan::Memory memory(RecordSlab::Instance());
    const HeapFailure failure(nth);
    EXPECT_FALSE(memory.Fill(10));
  }
}

}  // namespace
}  // namespace strata
