// Small blocks that auto_growth borrows from other streams, and the lifetime of
// these loans.

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "strata/tests/strategy/auto_growth/auto_growth_loans_fixture.h"

namespace strata {
namespace {

class AutoGrowthSmallLoansTest : public AutoGrowthLoansFixture {};

TEST_F(AutoGrowthSmallLoansTest, SmallBlocksShareWhatTheyBorrow) {
  Use({});
  const AllocationPtr used = LeaveFreeBlock();
  const AllocationPtr one = b_->Allocate(1000);
  const AllocationPtr two = b_->Allocate(1000);
  EXPECT_EQ(one->base(), used->base());
  EXPECT_EQ(two->base(), used->base());
  EXPECT_EQ(b_.strategy->stats().reserved_bytes, 2 * kMiB);
}

// Other streams borrow elsewhere. So streams that alternate end up with
// separate loans, instead of passing the same ones back and forth.
TEST_F(AutoGrowthSmallLoansTest, StreamsThatTakeTurnsKeepTheirSmallLoans) {
  Use({});
  const TestChain lender = place_->AddChain();
  const AllocationPtr used = lender->Allocate(9 * kMiB);
  const std::uint64_t growths = Growths();
  const auto take_turns = [&] {
    for (const TestChain& chain : {a_, b_}) {
      std::vector<AllocationPtr> small;
      for (int i = 0; i < 4; ++i) small.push_back(chain->Allocate(kMiB - 256));
    }
  };
  take_turns();
  const std::uint64_t misses_a = a_.strategy->stats().cache_misses;
  const std::uint64_t misses_b = b_.strategy->stats().cache_misses;
  for (int i = 0; i < 5; ++i) take_turns();
  EXPECT_EQ(a_.strategy->stats().cache_misses, misses_a);
  EXPECT_EQ(b_.strategy->stats().cache_misses, misses_b);
  EXPECT_EQ(a_.strategy->stats().reserved_bytes, 4 * kMiB);
  EXPECT_EQ(b_.strategy->stats().reserved_bytes, 4 * kMiB);
  EXPECT_EQ(Growths(), growths);
}

TEST_F(AutoGrowthSmallLoansTest,
       ALargeRequestLeavesSmallLoansThatWereUsedSince) {
  Use({});
  const AllocationPtr used = LeaveFreeBlock();
  const TestChain c = place_->AddChain();
  const auto miss = [&] { return c->Allocate(3 * kMiB); };
  b_->Allocate(1000).reset();
  const AllocationPtr first = miss();
  EXPECT_EQ(b_.strategy->stats().reserved_bytes, 2 * kMiB);
  b_->Allocate(1000).reset();
  const AllocationPtr second = miss();
  EXPECT_EQ(b_.strategy->stats().reserved_bytes, 2 * kMiB);
  const AllocationPtr third = miss();
  EXPECT_EQ(b_.strategy->stats().reserved_bytes, 0U);
}

TEST_F(AutoGrowthSmallLoansTest, SmallLoansGoHomeBeforeAnybodyGrows) {
  Use({});
  const AllocationPtr used = LeaveFreeBlock();
  b_->Allocate(1000).reset();
  const std::uint64_t growths = Growths();
  const AllocationPtr whole = a_->Allocate(11 * kMiB);
  EXPECT_EQ(whole->base(), used->base());
  EXPECT_EQ(Growths(), growths);
  EXPECT_EQ(b_.strategy->stats().reserved_bytes, 0U);
}

TEST_F(AutoGrowthSmallLoansTest, SmallLoansGoHomeWhereALoanMayCostAWait) {
  UseManual(/*wait=*/true);
  const AllocationPtr used = LeaveFreeBlock();
  const TestChain c = place_->AddChain();
  b_->Allocate(1000).reset();
  const AllocationPtr small = c->Allocate(1000);
  EXPECT_EQ(b_.strategy->stats().reserved_bytes, 0U);
  EXPECT_EQ(small->base(), used->base());
}

}  // namespace
}  // namespace strata
