#include "strata/allocation/decorators/stat_allocator.h"

#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "strata/tests/testing/layers/failing_allocator.h"
#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

class StatAllocatorTest : public ::testing::Test {
 protected:
  PoolPlace place_;
  std::shared_ptr<FailingAllocator> below_ =
      std::make_shared<FailingAllocator>(place_.pool());
  std::shared_ptr<PlacePeak> peak_ = std::make_shared<PlacePeak>();
  std::shared_ptr<ChainStream> stream_ = place_.NewChainStream();
  StatAllocator stat_{below_, stream_, peak_};
};

TEST_F(StatAllocatorTest, CountsRequestsAndRefusals) {
  AllocationPtr first = stat_.Allocate(1000);
  const AllocationPtr second = stat_.Allocate(500);
  first.reset();
  below_->Fail({1, 1});
  Failure failure;
  EXPECT_EQ(stat_.AllocateOrNull(Request{7, 0, kNoRetry}, failure), nullptr);
  const Stats stats = stat_.stats();
  EXPECT_EQ(stats.allocations, 2U);
  EXPECT_EQ(stats.frees, 1U);
  EXPECT_EQ(stats.failures, 1U);
  EXPECT_EQ(stats.requested_bytes, 500U);
  EXPECT_EQ(stats.total_requested_bytes, 1500U);
  EXPECT_EQ(stats.in_use_bytes, 500U);
  EXPECT_EQ(stats.live_allocations(), 1U);
}

TEST_F(StatAllocatorTest, ThePeakIsTheMostAtOnceSinceTheReset) {
  AllocationPtr first = stat_.Allocate(1000);
  AllocationPtr second = stat_.Allocate(500);
  first.reset();
  second.reset();
  const AllocationPtr third = stat_.Allocate(100);
  EXPECT_EQ(stat_.stats().peak_in_use_bytes, 1500U);
  stat_.ResetPeak();
  EXPECT_EQ(stat_.stats().peak_in_use_bytes, 100U);
}

// The front counts a hit, which passes no layer, in the state of the chain.
TEST_F(StatAllocatorTest, HitsPastTheLayersAreCounted) {
  EXPECT_TRUE(stream_->state().has_stat_layer);
  Block block;
  block.size = 512;
  block.requested = 300;
  stream_->state().lock.lock();
  stream_->state().Count(block);
  stream_->state().EndCount();
  const AllocationPtr walked = stat_.Allocate(1000);
  EXPECT_EQ(stat_.stats().allocations, 2U);
  EXPECT_EQ(stat_.stats().requested_bytes, 1300U);
  EXPECT_EQ(stat_.stats().in_use_bytes, 1512U);
  {
    const std::lock_guard<ChainLock> guard(stream_->state().lock);
    stream_->state().counts.Uncount(block);
  }
  EXPECT_EQ(stat_.stats().frees, 1U);
  EXPECT_EQ(stat_.stats().requested_bytes, 1000U);
  EXPECT_EQ(stat_.stats().peak_in_use_bytes, 1512U);
  EXPECT_EQ(peak_->bytes(), 1512U);
}

// In a chain that is built by hand, the layer has no stream.
TEST_F(StatAllocatorTest, CountsWithoutAStream) {
  StatAllocator alone(below_, nullptr);
  const AllocationPtr live = alone.Allocate(1000);
  EXPECT_EQ(alone.stats().in_use_bytes, 1000U);
  EXPECT_EQ(stat_.stats().in_use_bytes, 0U);
}

// paddle.md §5 B12: peaks of alternating threads were missed, and the counts of
// an ended thread were lost.
TEST_F(StatAllocatorTest, CountsOverThreadsThatAreGone) {
  AllocationPtr of_a;
  AllocationPtr of_b;
  std::thread([&] { of_a = stat_.Allocate(10); }).join();
  of_a.reset();
  std::thread([&] { of_b = stat_.Allocate(5); }).join();
  std::thread([&] { of_a = stat_.Allocate(8); }).join();
  EXPECT_EQ(stat_.stats().peak_in_use_bytes, 13U);
  EXPECT_EQ(stat_.stats().in_use_bytes, 13U);
}

TEST_F(StatAllocatorTest, ThePeakOfAPlaceSpansItsChains) {
  StatAllocator other(below_, place_.NewChainStream(), peak_);
  AllocationPtr first = stat_.Allocate(1000);
  AllocationPtr second = other.Allocate(500);
  first.reset();
  EXPECT_EQ(peak_->bytes(), 1500U);
  EXPECT_EQ(stat_.stats().peak_in_use_bytes, 1000U);
  peak_->Reset();
  EXPECT_EQ(peak_->bytes(), 500U);
}

TEST_F(StatAllocatorTest, IsExactWithManyThreads) {
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < 500; ++i) stat_.Allocate(100 * (t + 1)).reset();
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Stats stats = stat_.stats();
  EXPECT_EQ(stats.allocations, 2000U);
  EXPECT_EQ(stats.frees, 2000U);
  EXPECT_EQ(stats.in_use_bytes, 0U);
  EXPECT_EQ(stats.total_requested_bytes, 500U * 1000);
  EXPECT_GE(stats.peak_in_use_bytes, 400U);
  EXPECT_LE(stats.peak_in_use_bytes, 1000U);
  EXPECT_EQ(peak_->bytes(), stats.peak_in_use_bytes);
}

}  // namespace
}  // namespace strata
