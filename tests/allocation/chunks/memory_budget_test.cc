// Ranges that a place claims, holds and returns, with its own budget and on top
// of another budget. Chunks are in chunk_pool_test.cc, memory of a driver in
// driver_held_test.cc.

#include "strata/allocation/chunks/memory_budget.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

class MemoryBudgetTest : public ::testing::Test {
 protected:
  bool ClaimPages(MemoryBudget& budget, std::size_t bytes) {
    failure_ = Failure();
    return budget.ClaimPages(bytes, failure_);
  }

  PoolPlace place_;
  MemoryBudget below_{*place_.system(), nullptr, Mebibytes(8), "--below",
                      place_.reclaimer()};
  MemoryBudget above_{*place_.system(), &below_, Mebibytes(6), "--above",
                      place_.reclaimer()};
  Failure failure_;
};

TEST_F(MemoryBudgetTest, PagesCountInTheBudgetsBelowToo) {
  ASSERT_TRUE(ClaimPages(above_, Mebibytes(4)));
  EXPECT_EQ(below_.claimed_bytes(), Mebibytes(4));
  EXPECT_EQ(below_.held_bytes(), 0U);
  above_.HoldPages(Mebibytes(4), /*pieces=*/2);
  EXPECT_EQ(above_.stats().chunks, 2U);
  EXPECT_EQ(below_.held_bytes(), Mebibytes(4));
  EXPECT_TRUE(above_.ReturnPages(Mebibytes(4), [] { return true; }));
  EXPECT_EQ(above_.held_bytes() + above_.claimed_bytes(), 0U);
  EXPECT_EQ(below_.held_bytes() + below_.claimed_bytes(), 0U);
  EXPECT_EQ(below_.stats().peak_reserved_bytes, Mebibytes(4));
}

TEST_F(MemoryBudgetTest, ARefusalBelowLeavesNothingClaimed) {
  ASSERT_TRUE(ClaimPages(below_, Mebibytes(4)));
  EXPECT_FALSE(ClaimPages(above_, Mebibytes(5)));
  EXPECT_EQ(failure_.reason, Failure::Reason::kLimit);
  EXPECT_EQ(above_.claimed_bytes(), 0U);
  EXPECT_EQ(below_.claimed_bytes(), Mebibytes(4));
  EXPECT_EQ(below_.stats().failures, 1U);
}

TEST_F(MemoryBudgetTest, TheLimitAboveIsAskedFirst) {
  EXPECT_FALSE(ClaimPages(above_, Mebibytes(7)));
  EXPECT_STREQ(failure_.limit_flag, "--above");
  EXPECT_EQ(below_.stats().failures, 0U);
}

TEST_F(MemoryBudgetTest, PagesThatTheSystemRefusesStayCounted) {
  ASSERT_TRUE(ClaimPages(above_, Mebibytes(4)));
  above_.HoldPages(Mebibytes(4), /*pieces=*/1);
  EXPECT_FALSE(above_.ReturnPages(Mebibytes(4), [] { return false; }));
  for (const MemoryBudget* budget : {&above_, &below_}) {
    EXPECT_EQ(budget->held_bytes(), Mebibytes(4));
    EXPECT_EQ(budget->claimed_bytes(), Mebibytes(4));
    EXPECT_EQ(budget->stats().frees, 0U);
  }
  EXPECT_TRUE(above_.ReturnPages(Mebibytes(4), [] { return true; }));
}

// Until the pages are returned to the system, another request must not claim
// them.
TEST_F(MemoryBudgetTest, AClaimLastsUntilTheSystemHasThePages) {
  ASSERT_TRUE(ClaimPages(above_, Mebibytes(4)));
  above_.HoldPages(Mebibytes(4), /*pieces=*/1);
  above_.ReturnPages(Mebibytes(4), [&] {
    EXPECT_EQ(below_.held_bytes(), 0U);
    EXPECT_FALSE(ClaimPages(below_, Mebibytes(5)));
    return true;
  });
  EXPECT_TRUE(ClaimPages(below_, Mebibytes(8)));
  below_.UnclaimPages(Mebibytes(8), /*was_refused=*/false);
}

TEST_F(MemoryBudgetTest, AddressesAreBoundedInTheLowestBudget) {
  EXPECT_TRUE(above_.ClaimAddresses(Mebibytes(60), Mebibytes(100)));
  EXPECT_FALSE(below_.ClaimAddresses(Mebibytes(41), Mebibytes(100)));
  EXPECT_TRUE(below_.ClaimAddresses(Mebibytes(40), Mebibytes(100)));
  above_.UnclaimAddresses(Mebibytes(60));
  EXPECT_TRUE(above_.ClaimAddresses(Mebibytes(60), Mebibytes(100)));
}

TEST_F(MemoryBudgetTest, RoomIsTheLeastThatAnyLimitLeaves) {
  EXPECT_EQ(above_.last_room_bytes(), SIZE_MAX);
  EXPECT_EQ(above_.RoomBytes(nullptr), Mebibytes(6));
  ASSERT_TRUE(ClaimPages(below_, Mebibytes(5)));
  EXPECT_EQ(above_.RoomBytes(nullptr), Mebibytes(3));
  EXPECT_EQ(above_.last_room_bytes(), Mebibytes(3));
  EXPECT_EQ(below_.RoomBytes(&place_.device()), Mebibytes(3));
  below_.UnclaimPages(Mebibytes(5), /*was_refused=*/true);
}

}  // namespace
}  // namespace strata
