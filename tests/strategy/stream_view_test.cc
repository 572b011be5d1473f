#include "strata/strategy/stream_view.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "strata/strategy/auto_growth_allocator.h"
#include "strata/tests/testing/live_ranges.h"
#include "strata/tests/testing/pool_place.h"

namespace strata {
namespace {

// A strategy that two streams share, as StrategySource builds it.
class StreamViewTest : public ::testing::Test {
 protected:
  std::unique_ptr<StreamView> NewView() {
    return std::make_unique<StreamView>(strategy_, order_,
                                        place_.NewChainStream());
  }
  std::uint64_t Waits() const {
    return place_.device().CallCount(DeviceCall::kStreamWaitEvent);
  }

  PoolPlace place_;
  std::shared_ptr<SharedOrder> order_ = std::make_shared<SharedOrder>();
  std::shared_ptr<AutoGrowthAllocator> strategy_ =
      std::make_shared<AutoGrowthAllocator>(
          place_.pool(), order_, AutoGrowthPolicy(StrategyOptions()));
  std::unique_ptr<StreamView> a_ = NewView();
  std::unique_ptr<StreamView> b_ = NewView();
};

TEST_F(StreamViewTest, AStreamGetsItsOwnBlockBackWithoutWaiting) {
  AllocationPtr block = a_->Allocate(4096);
  const void* data = block->data();
  block.reset();
  block = a_->Allocate(4096);
  EXPECT_EQ(block->data(), data);
  EXPECT_EQ(Waits(), 0U);
}

TEST_F(StreamViewTest, AnotherStreamWaitsBeforeItReusesABlock) {
  AllocationPtr block = a_->Allocate(4096);
  const void* data = block->data();
  block.reset();
  block = b_->Allocate(4096);
  EXPECT_EQ(block->data(), data);
  EXPECT_EQ(Waits(), 1U);
}

TEST_F(StreamViewTest, CountsItsOwnStreamOnly) {
  const AllocationPtr first = a_->Allocate(1000);
  const AllocationPtr second = b_->Allocate(5000);
  EXPECT_EQ(a_->stats().requested_bytes, 1000U);
  EXPECT_EQ(a_->stats().allocations, 1U);
  EXPECT_EQ(b_->stats().requested_bytes, 5000U);
  EXPECT_EQ(strategy_->stats().in_use_bytes,
            a_->stats().in_use_bytes + b_->stats().in_use_bytes);
}

TEST_F(StreamViewTest, AnOrderThatFailsHandsNothingOut) {
  a_->Allocate(4096).reset();
  place_.device().AddFault(FailAll(DeviceCall::kEventRecord));
  place_.device().AddFault(FailAll(DeviceCall::kStreamSynchronize));
  place_.device().AddFault(FailAll(DeviceCall::kSynchronize));
  Failure failure;
  EXPECT_EQ(b_->AllocateOrNull(Request{4096}, failure), nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kDevice);
  EXPECT_EQ(b_->stats().live_allocations(), 0U);
  EXPECT_EQ(strategy_->stats().in_use_bytes, 0U);
  // The stream that freed the block is not concerned.
  EXPECT_NE(a_->AllocateOrNull(Request{4096}, failure), nullptr);
}

TEST_F(StreamViewTest, ReleaseWaitsForEveryStream) {
  a_->Allocate(4096).reset();
  const std::uint64_t waits =
      place_.device().CallCount(DeviceCall::kStreamSynchronize);
  EXPECT_GT(b_->Release(), 0U);
  EXPECT_EQ(place_.device().CallCount(DeviceCall::kStreamSynchronize),
            waits + 2);
  EXPECT_EQ(place_.pool()->reserved_bytes(), 0U);
}

TEST_F(StreamViewTest, ViewsServeThreadsTogether) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 300;
  LiveRanges live;
  std::vector<std::unique_ptr<StreamView>> views;
  for (int i = 0; i < kThreads; ++i) views.push_back(NewView());
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (auto& view : views) {
    threads.emplace_back([&live, &view] {
      for (std::size_t i = 1; i <= kRounds; ++i) {
        AllocationPtr block = view->Allocate(i * 512);
        EXPECT_TRUE(live.Add(*block));
        EXPECT_TRUE(live.Remove(*block));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(strategy_->stats().in_use_bytes, 0U);
  EXPECT_TRUE(strategy_->IsConsistent());
}

}  // namespace
}  // namespace strata
