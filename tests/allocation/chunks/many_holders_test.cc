// The holders that a ChunkPool asks for idle memory of other streams when there
// are more holders than a growth may ask.

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "strata/allocation/chunks/chunk_pool.h"
#include "strata/tests/testing/layers/counting_holder.h"
#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

using Asked = HolderList::Asked;

class ManyHoldersTest : public ::testing::Test {
 protected:
  void AddHolders(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      holders_.push_back(std::make_unique<CountingHolder>(*place_.pool()));
    }
  }
  void Borrow(Asked asked) {
    EXPECT_EQ(
        place_.pool()->loans().Borrow({Mebibytes(1), *stream_}, own_, asked),
        nullptr);
  }
  void Recall(Asked asked) {
    EXPECT_EQ(
        place_.pool()->loans().Recall(ChunkHolder::LoanRecall::kIdle, asked),
        0U);
  }
  // Number of holders that were asked `times` times to lend or to return loans.
  std::size_t WereAsked(int times) const {
    std::size_t count = 0;
    for (const auto& holder : holders_) count += holder->borrows == times;
    return count;
  }
  std::size_t WereRecalled(int times) const {
    std::size_t count = 0;
    for (const auto& holder : holders_) count += holder->recalls == times;
    return count;
  }

  PoolPlace place_;
  std::shared_ptr<ChainStream> stream_ = place_.NewChainStream();
  CountingHolder own_{*place_.pool()};
  std::vector<std::unique_ptr<CountingHolder>> holders_;
};

TEST_F(ManyHoldersTest, UpToTheBoundAllAreAskedEachTime) {
  AddHolders(HolderList::kMostAsked - 1);  // and own_
  for (int times = 1; times <= 2; ++times) {
    Borrow(Asked::kSome);
    Recall(Asked::kSome);
    EXPECT_EQ(WereAsked(times), holders_.size());
    EXPECT_EQ(WereRecalled(times), holders_.size());
  }
  EXPECT_EQ(own_.borrows, 0);
}

TEST_F(ManyHoldersTest, BeyondItTheyTakeTurns) {
  AddHolders(2 * HolderList::kMostAsked - 1);
  Borrow(Asked::kSome);
  EXPECT_EQ(WereAsked(1), HolderList::kMostAsked - 1);
  Borrow(Asked::kSome);
  EXPECT_EQ(WereAsked(1), holders_.size());
  Borrow(Asked::kSome);
  EXPECT_EQ(WereAsked(2), HolderList::kMostAsked - 1);
}

// The returned memory belongs to the holders that are asked next.
TEST_F(ManyHoldersTest, LoansAreRecalledFromThoseWhoAreAskedNext) {
  AddHolders(3 * HolderList::kMostAsked);
  Recall(Asked::kSome);
  Borrow(Asked::kSome);
  for (const auto& holder : holders_) {
    EXPECT_EQ(holder->borrows, holder->recalls);
  }
  EXPECT_EQ(WereRecalled(1), HolderList::kMostAsked - 1);
}

TEST_F(ManyHoldersTest, WhoMayNotMissAnyAsksAll) {
  AddHolders(3 * HolderList::kMostAsked);
  Borrow(Asked::kAll);
  Recall(Asked::kAll);
  EXPECT_EQ(WereAsked(1), holders_.size());
  EXPECT_EQ(WereRecalled(1), holders_.size());
}

TEST_F(ManyHoldersTest, AnEndIsToldToThoseWhoHeedIt) {
  AddHolders(3 * HolderList::kMostAsked);
  const Stream stream = place_.NewChainStream()->stream();
  place_.pool()->holders().HeedEnd(stream, *holders_[7]);
  place_.pool()->holders().HeedEnd(stream, *holders_[7]);
  place_.pool()->holders().TellHeedersOfEnd(stream);
  place_.pool()->holders().TellHeedersOfEnd(stream);
  for (const auto& holder : holders_) {
    EXPECT_EQ(holder->ends, holder == holders_[7] ? 1 : 0);
  }
}

TEST_F(ManyHoldersTest, OneThatIsGoneIsNotTold) {
  AddHolders(2);
  const Stream stream = place_.NewChainStream()->stream();
  place_.pool()->holders().HeedEnd(stream, *holders_[0]);
  place_.pool()->holders().HeedEnd(stream, *holders_[1]);
  holders_.erase(holders_.begin());
  place_.pool()->holders().TellHeedersOfEnd(stream);
  EXPECT_EQ(holders_[0]->ends, 1);
}

// Removed holders do not use up turns for long.
TEST_F(ManyHoldersTest, AllThatAreLeftAreAskedOnceTheyAreFew) {
  AddHolders(3 * HolderList::kMostAsked);
  holders_.resize(HolderList::kMostAsked - 1);
  Borrow(Asked::kSome);
  EXPECT_EQ(WereAsked(1), holders_.size());
}

}  // namespace
}  // namespace strata
