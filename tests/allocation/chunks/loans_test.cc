// Holders that retire while another call searches for retired holders.

#include "strata/allocation/chunks/loans.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "strata/allocation/chunks/holder_list.h"
#include "strata/allocation/chunks/memory_budget.h"
#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

// Its last loan returns during its first call of EndLending, too late for that
// call. The returning thread then searches for retired holders, like ChunkPool.
class LateLender : public ChunkHolder {
 public:
  LateLender(Loans& loans, int& alive)
      : ChunkHolder(Identity{}), loans_(loans), alive_(alive) {
    ++alive_;
  }
  ~LateLender() override { --alive_; }

  IdleInfo Idle(std::size_t /*fit_bytes*/) const noexcept override {
    return {};
  }
  bool IdleIsDone() noexcept override { return true; }
  bool EndLending(End /*end*/) noexcept override {
    if (can_end_) return true;
    if (--early_calls_ >= 0) return false;
    can_end_ = true;
    loans_.EndRetired();
    return false;
  }

  // `calls` calls of EndLending precede the one during which the loan returns.
  void set_early_calls(int calls) { early_calls_ = calls; }

 private:
  Loans& loans_;
  int& alive_;
  int early_calls_ = 0;
  bool can_end_ = false;
};

// Notes its number when it is asked whether it can end.
class QueuedLender : public LateLender {
 public:
  QueuedLender(Loans& loans, int& alive, int number, std::vector<int>& asked)
      : LateLender(loans, alive), number_(number), asked_(asked) {}
  bool EndLending(End /*end*/) noexcept override {
    asked_.push_back(number_);
    return asked_.size() > 4;
  }

 private:
  const int number_;
  std::vector<int>& asked_;
};

class LoansTest : public ::testing::Test {
 protected:
  PoolPlace place_;
  MemoryBudget budget_{*place_.system(), nullptr, 0, "", place_.reclaimer()};
  HolderList holders_;
  Loans loans_{holders_, budget_};
  int alive_ = 0;
};

// The other call finds an empty list.
TEST_F(LoansTest, AHolderEndsWhoseLastLoanReturnsWhileItRetires) {
  loans_.Retire(std::make_unique<LateLender>(loans_, alive_));
  EXPECT_EQ(alive_, 0);
  EXPECT_FALSE(loans_.has_retired());
}

// The other call finds the list empty, because this one has removed the holder.
TEST_F(LoansTest, AHolderEndsWhoseLastLoanReturnsWhileACallHasIt) {
  auto lender = std::make_unique<LateLender>(loans_, alive_);
  lender->set_early_calls(1);
  loans_.Retire(std::move(lender));
  ASSERT_EQ(alive_, 1);
  loans_.EndRetired();
  EXPECT_EQ(alive_, 0);
  EXPECT_FALSE(loans_.has_retired());
}

TEST_F(LoansTest, TheHolderThatRetiredFirstIsAskedFirst) {
  std::vector<int> asked;
  loans_.Retire(std::make_unique<QueuedLender>(loans_, alive_, 1, asked));
  // Asks the first one before it adds the second one.
  loans_.Retire(std::make_unique<QueuedLender>(loans_, alive_, 2, asked));
  loans_.EndRetired(/*most=*/1);
  EXPECT_EQ(asked, (std::vector<int>{1, 1, 2, 1}));
  loans_.EndRetired();
  EXPECT_EQ(asked, (std::vector<int>{1, 1, 2, 1, 2, 1}));
  EXPECT_EQ(alive_, 0);
  EXPECT_FALSE(loans_.has_retired());
}

}  // namespace
}  // namespace strata
