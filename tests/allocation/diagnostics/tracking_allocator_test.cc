#include "strata/allocation/diagnostics/tracking_allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "strata/allocation/diagnostics/allocation_log.h"
#include "strata/allocation/diagnostics/debug_fill.h"
#include "strata/tests/testing/layers/counting_allocator.h"
#include "strata/tests/testing/layers/failing_allocator.h"
#include "strata/tests/testing/layers/pool_place.h"
#include "strata/tests/testing/manual_clock.h"

namespace strata {
namespace {

using std::chrono::microseconds;

// tf_bfc §2: TrackingAllocator.
class TrackingAllocatorTest : public ::testing::Test {
 protected:
  PoolPlace place_;
  std::shared_ptr<FailingAllocator> failing_ =
      std::make_shared<FailingAllocator>(place_.pool());
  CountingAllocator base_{failing_};
  ManualClock clock_;
  TrackingAllocator::Ptr tracker_ = TrackingAllocator::Make(base_, clock_);
};

TEST_F(TrackingAllocatorTest, KnowsTotalPeakAndLive) {
  AllocationPtr first = tracker_->Allocate(1000);
  AllocationPtr second = tracker_->Allocate(3000);
  first.reset();
  AllocationPtr third = tracker_->Allocate(500);
  const TrackingAllocator::Sizes sizes = tracker_->sizes();
  EXPECT_EQ(sizes.total_bytes, 4500U);
  EXPECT_EQ(sizes.peak_bytes, 4000U);
  EXPECT_EQ(sizes.live_bytes, 3500U);
}

TEST_F(TrackingAllocatorTest, RecordsSignedBytesAndTimes) {
  clock_.Advance(microseconds(5));
  AllocationPtr allocation = tracker_->Allocate(1000);
  clock_.Advance(microseconds(7));
  allocation.reset();
  const auto records = tracker_->records();
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].bytes, 1000);
  EXPECT_EQ(records[0].time, microseconds(5));
  EXPECT_EQ(records[1].bytes, -1000);
  EXPECT_EQ(records[1].time, microseconds(12));
}

TEST_F(TrackingAllocatorTest, NumbersItsAllocationsFromOne) {
  AllocationPtr first = tracker_->Allocate(1);
  AllocationPtr second = tracker_->Allocate(2);
  EXPECT_EQ(tracker_->AllocationId(*first), 1U);
  EXPECT_EQ(tracker_->AllocationId(*second), 2U);
  first.reset();
  AllocationPtr third = tracker_->Allocate(1);
  EXPECT_EQ(tracker_->AllocationId(*third), 3U);
  const AllocationPtr other = base_.Allocate(1);
  EXPECT_EQ(tracker_->AllocationId(*other), 0U);
}

TEST_F(TrackingAllocatorTest, WhatIsNullIsNotCounted) {
  failing_->Fail({1, 100});
  Failure failure;
  EXPECT_EQ(tracker_->AllocateOrNull(Request{1000}, failure), nullptr);
  EXPECT_STREQ(failure.layer, "failing");
  const AllocationPtr zero = tracker_->Allocate(0);
  EXPECT_TRUE(tracker_->records().empty());
  EXPECT_EQ(tracker_->sizes().total_bytes, 0U);
}

TEST_F(TrackingAllocatorTest, LivesUntilItsLastBlockIsFreed) {
  AllocationPtr first = tracker_->Allocate(1000);
  AllocationPtr second = tracker_->Allocate(2000);
  const auto* tracker = static_cast<TrackingAllocator*>(first->owner());
  EXPECT_EQ(tracker, tracker_.get());
  tracker_.reset();
  first.reset();  // reads the tracker, which must stay for the second
  EXPECT_EQ(tracker->sizes().live_bytes, 2000U);
  second.reset();
  EXPECT_EQ(base_.live(), 0U);
}

TEST_F(TrackingAllocatorTest, IsFreedThroughTheAllocatorItIsPutAround) {
  tracker_->Allocate(1000).reset();
  EXPECT_EQ(base_.allocations(), 1U);
  EXPECT_EQ(base_.frees(), 1U);
}

TEST_F(TrackingAllocatorTest, KeepsTheFillAndTheLogOfTheAllocator) {
  DebugFill fill(&place_.device(), 7, /*sync=*/false);
  base_.set_debug_fill(&fill);
  const std::string path = TemporaryPath("tracked.json");
  AllocationLog log(path);
  base_.set_allocation_log(&log);
  const auto tracker = TrackingAllocator::Make(base_, clock_);
  EXPECT_EQ(tracker->debug_fill(), &fill);
  EXPECT_EQ(tracker->allocation_log(), &log);
  std::remove(path.c_str());
}

TEST_F(TrackingAllocatorTest, IsExactAcrossThreads) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 500;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < kRounds; ++i) tracker_->Allocate(256).reset();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(tracker_->sizes().total_bytes, 256U * kThreads * kRounds);
  EXPECT_EQ(tracker_->sizes().live_bytes, 0U);
  EXPECT_EQ(tracker_->records().size(), 2U * kThreads * kRounds);
}

TEST_F(TrackingAllocatorTest, TheLastFreeAndItsOwnerMayRace) {
  for (int i = 0; i < 200; ++i) {
    auto tracker = TrackingAllocator::Make(base_, clock_);
    AllocationPtr allocation = tracker->Allocate(256);
    std::thread other([&allocation] { allocation.reset(); });
    tracker.reset();
    other.join();
  }
  EXPECT_EQ(base_.live(), 0U);
}

}  // namespace
}  // namespace strata
