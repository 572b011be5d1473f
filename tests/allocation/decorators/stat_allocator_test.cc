#include "strata/allocation/decorators/stat_allocator.h"

#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "strata/allocation/record_slab.h"
#include "strata/tests/testing/layers/failing_allocator.h"
#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

// A bottom layer whose hit path always returns a block of 512 bytes.
class CachingAllocator final : public Decorator, private HitPath {
 public:
  explicit CachingAllocator(std::shared_ptr<Allocator> underlying)
      : Decorator(std::move(underlying)), HitPath(/*may_bias=*/false) {}
  const char* name() const override { return "caching"; }
  HitPath* hit_path() override { return this; }

 private:
  Block* TakeCached(std::size_t /*bytes*/) noexcept override {
    Block* block = RecordSlab::Instance().Take();
    block->size = 512;
    block->flags = kBlockLive;
    return block;
  }
  bool GiveCached(Block* block) noexcept override {
    RecordSlab::Instance().Give(block);
    return true;
  }
};

class StatAllocatorTest : public ::testing::Test {
 protected:
  PoolPlace place_;
  std::shared_ptr<FailingAllocator> below_ =
      std::make_shared<FailingAllocator>(place_.pool());
  std::shared_ptr<PlaceMeter> meter_ = std::make_shared<PlaceMeter>();
  StatAllocator stat_{below_, meter_};
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

TEST_F(StatAllocatorTest, HitsPastTheLayersAreCounted) {
  auto caching = std::make_shared<CachingAllocator>(place_.pool());
  StatAllocator stat(caching, meter_);
  HitPath* hits = stat.hit_path();
  ASSERT_NE(hits, nullptr);
  Block* block = nullptr;
  {
    const std::lock_guard<ChainLock> guard(*hits->hit_lock());
    block = hits->Take(300);
    block->requested = 300;
    stat.CountHit(*block);
  }
  const AllocationPtr walked = stat.Allocate(1000);
  EXPECT_EQ(stat.stats().allocations, 2U);
  EXPECT_EQ(stat.stats().requested_bytes, 1300U);
  EXPECT_EQ(stat.stats().in_use_bytes, 1512U);
  EXPECT_EQ(meter_->in_use_bytes(), 1512U);
  {
    const std::lock_guard<ChainLock> guard(*hits->hit_lock());
    stat.CountGiven(*block);
    hits->Give(block);
  }
  EXPECT_EQ(stat.stats().frees, 1U);
  EXPECT_EQ(stat.stats().requested_bytes, 1000U);
  EXPECT_EQ(stat.stats().peak_in_use_bytes, 1512U);
  EXPECT_EQ(meter_->peak_in_use_bytes(), 1512U);
}

// A free that the hit path declines walks, and counts once.
TEST_F(StatAllocatorTest, WhatIsKeptCountsAsBefore) {
  StatAllocator stat(below_, meter_);
  const AllocationPtr live = stat.Allocate(1000);
  const Stats before = stat.stats();
  {
    const std::lock_guard<ChainLock> guard(stat.hit_state().lock);
    stat.CountGiven(*live->block());
    stat.CountKept(*live->block());
  }
  EXPECT_EQ(stat.stats().frees, before.frees);
  EXPECT_EQ(stat.stats().requested_bytes, before.requested_bytes);
  EXPECT_EQ(stat.stats().in_use_bytes, before.in_use_bytes);
  EXPECT_EQ(meter_->in_use_bytes(), before.in_use_bytes);
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
  StatAllocator other(below_, meter_);
  AllocationPtr first = stat_.Allocate(1000);
  AllocationPtr second = other.Allocate(500);
  first.reset();
  EXPECT_EQ(meter_->in_use_bytes(), 500U);
  EXPECT_EQ(meter_->peak_in_use_bytes(), 1500U);
  EXPECT_EQ(stat_.stats().peak_in_use_bytes, 1000U);
  meter_->ResetPeak();
  EXPECT_EQ(meter_->peak_in_use_bytes(), 500U);
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
  EXPECT_EQ(meter_->in_use_bytes(), 0U);
  EXPECT_EQ(meter_->peak_in_use_bytes(), stats.peak_in_use_bytes);
}

}  // namespace
}  // namespace strata
