// With more streams than one growth asks, every stream is asked before a
// request fails.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "strata/allocation/chunks/chunk_pool.h"
#include "strata/strategy/auto_growth/options.h"
#include "strata/tests/strategy/auto_growth/auto_growth_loans_fixture.h"
#include "strata/tests/testing/layers/counting_holder.h"

namespace strata {
namespace {

class AutoGrowthManyStreamsTest : public AutoGrowthLoansFixture {
 protected:
  // Each growth asks twice. The growth of chain A, the first one, asks all
  // chains before it; the next growth asks the chains behind it, and the first
  // one again. So the asked chains vary.
  void UseMany(std::uint64_t memory_bytes) {
    TestPlaceOptions options;
    options.memory_bytes = memory_bytes;
    options.strategy_options.Edit<AutoGrowthOptions>()
        .auto_growth_chunk_size_in_mb = 20;
    place_ = std::make_unique<TestPlace>(options);
    b_ = place_->AddChain();
    AddOthers(2 * HolderList::kMostAsked - 2);
    a_ = place_->AddChain();
    AddOthers(HolderList::kMostAsked + 1);
  }
  void TearDown() override {
    others_.clear();
    AutoGrowthLoansFixture::TearDown();
  }

 private:
  void AddOthers(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      others_.push_back(std::make_unique<CountingHolder>(*place_->pool()));
    }
  }

  std::vector<std::unique_ptr<CountingHolder>> others_;
};

TEST_F(AutoGrowthManyStreamsTest, AGrowthDoesNotAskThemAll) {
  UseMany(Mebibytes(256));
  const AllocationPtr used = LeaveFreeBlock();
  const AllocationPtr own = b_->Allocate(8 * kMiB);
  EXPECT_NE(own->base(), used->base());
  EXPECT_EQ(Growths(), 2U);
}

TEST_F(AutoGrowthManyStreamsTest, AtExhaustionItDoes) {
  UseMany(Mebibytes(20));
  const AllocationPtr used = LeaveFreeBlock();
  const AllocationPtr borrowed = b_->Allocate(8 * kMiB);
  EXPECT_EQ(borrowed->base(), used->base());
}

// The chunk of A contains a loan of a stream that is far from the streams asked
// first.
TEST_F(AutoGrowthManyStreamsTest, ReleaseTakesBackEveryLoan) {
  UseMany(Mebibytes(20));
  std::swap(a_, b_);
  AllocationPtr used = LeaveFreeBlock();
  AllocationPtr borrowed = b_->Allocate(8 * kMiB);
  borrowed.reset();
  used.reset();
  EXPECT_EQ(a_.strategy->Release(), 20 * kMiB);
  EXPECT_EQ(place_->pool()->reserved_bytes(), 0U);
}

}  // namespace
}  // namespace strata
