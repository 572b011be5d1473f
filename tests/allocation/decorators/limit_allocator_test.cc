#include "strata/allocation/decorators/limit_allocator.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "strata/allocation/decorators/registry.h"
#include "strata/allocation/error.h"
#include "strata/tests/testing/layers/failing_allocator.h"
#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

class LimitAllocatorTest : public ::testing::Test {
 protected:
  PoolPlace place_;
  std::shared_ptr<FailingAllocator> below_ =
      std::make_shared<FailingAllocator>(place_.pool());
  std::shared_ptr<Budget> budget_ = std::make_shared<Budget>(Mebibytes(10));
  LimitAllocator limit_{below_, budget_};
};

TEST_F(LimitAllocatorTest, SaysWhatIsInUseOfWhatIsAllowed) {
  const AllocationPtr live = limit_.Allocate(Mebibytes(9));
  try {
    limit_.Allocate(Mebibytes(3));
    FAIL() << "12 MiB of 10 MiB";
  } catch (const OutOfMemory& error) {
    EXPECT_STREQ(error.what(),
                 "limit: cannot allocate 3.0 MiB on device:0: 9.0 MiB in use "
                 "of 10.0 MiB allowed by --strata_in_use_limit");
  }
  EXPECT_EQ(limit_.stats().failures, 1U);
  EXPECT_EQ(below_->calls(), 1U);
}

TEST_F(LimitAllocatorTest, ServesTheLimitToTheByte) {
  AllocationPtr first = limit_.Allocate(Mebibytes(10) - 1);
  AllocationPtr last = limit_.Allocate(1);
  Failure failure;
  EXPECT_EQ(limit_.AllocateOrNull(Request{1}, failure), nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kBudget);
  EXPECT_EQ(limit_.stats().requested_bytes, Mebibytes(10));
  EXPECT_EQ(limit_.stats().limit_bytes, Mebibytes(10));
  last.reset();
  EXPECT_NE(limit_.AllocateOrNull(Request{1}, failure), nullptr);
}

TEST_F(LimitAllocatorTest, RestoresTheBudgetWhenTheUnderlyingRefuses) {
  below_->Fail({1, 1});
  Failure failure;
  EXPECT_EQ(limit_.AllocateOrNull(Request{Mebibytes(10)}, failure), nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kDeviceMemory);
  EXPECT_EQ(budget_->in_use_bytes(), 0U);
  EXPECT_NE(limit_.Allocate(Mebibytes(10)), nullptr);
}

TEST_F(LimitAllocatorTest, HugeRequestsDoNotOverflowTheBudget) {
  const AllocationPtr live = limit_.Allocate(1000);
  Failure failure;
  EXPECT_EQ(limit_.AllocateOrNull(Request{SIZE_MAX}, failure), nullptr);
  EXPECT_EQ(budget_->in_use_bytes(), 1000U);
}

TEST_F(LimitAllocatorTest, ChainsOfAPlaceShareTheBudget) {
  DecoratorOptions options = NoDecorators();
  options.in_use_limit_bytes = Mebibytes(10);
  ChainContext context;
  context.place_services = std::make_shared<SharedServices>();
  const auto one = Decorate(place_.pool(), options, context);
  const auto other = Decorate(place_.pool(), options, context);
  const AllocationPtr live = one->Allocate(Mebibytes(6));
  Failure failure;
  EXPECT_EQ(other->AllocateOrNull(Request{Mebibytes(5)}, failure), nullptr);
  EXPECT_NE(other->AllocateOrNull(Request{Mebibytes(4)}, failure), nullptr);
}

TEST_F(LimitAllocatorTest, CountsWhatWasAskedNotWhatAlignmentAdds) {
  DecoratorOptions options = NoDecorators();
  options.in_use_limit_bytes = Mebibytes(10);
  options.aligned = true;
  const auto chain = Decorate(place_.pool(), options, ChainContext());
  const AllocationPtr live =
      chain->Allocate(Request{Mebibytes(9), kMaxAlignment});
  EXPECT_EQ(chain->stats().requested_bytes, Mebibytes(9));
  EXPECT_NE(chain->Allocate(Mebibytes(1)), nullptr);
}

TEST_F(LimitAllocatorTest, TheSumNeverExceedsTheLimit) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < 2000; ++i) {
        if (budget_->Reserve(Mebibytes(4))) {
          EXPECT_LE(budget_->in_use_bytes(), Mebibytes(10));
          budget_->Return(Mebibytes(4));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(budget_->in_use_bytes(), 0U);
}

}  // namespace
}  // namespace strata
