// tf_bfc.md R41.

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "strata/strategy/bfc/kernel_tracker.h"
#include "strata/tests/strategy/bfc/bfc_fixture.h"

namespace strata {
namespace {

class KernelTrackerTest : public ::testing::Test {
 protected:
  KernelTracker Tracker(int most_interval, std::size_t most_bytes,
                        int most_pending) {
    KernelTracker::Rules rules;
    rules.most_interval = most_interval;
    rules.most_bytes = most_bytes;
    rules.most_pending = most_pending;
    return {rules, counter_};
  }

  std::shared_ptr<SharedCounter> counter_ = std::make_shared<SharedCounter>();
};

TEST_F(KernelTrackerTest, WithoutRulesEveryKernelIsTracked) {
  KernelTracker tracker = Tracker(0, 0, 0);
  EXPECT_EQ(tracker.Launched(0), 1U);
  EXPECT_EQ(tracker.Launched(1 << 30), 2U);
  EXPECT_FALSE(tracker.HasTooMany());
}

TEST_F(KernelTrackerTest, TheIntervalSkipsKernels) {
  KernelTracker tracker = Tracker(3, 0, 0);
  std::vector<bool> tracked;
  for (int i = 0; i < 7; ++i)
    tracked.push_back(tracker.Launched(0).has_value());
  EXPECT_EQ(tracked, (std::vector<bool>{0, 0, 1, 0, 0, 1, 0}));
  EXPECT_EQ(counter_->Get(), 2U);
}

TEST_F(KernelTrackerTest, ManyBytesMakeAKernelDue) {
  KernelTracker tracker = Tracker(100, 1000, 0);
  EXPECT_EQ(tracker.Launched(999), std::nullopt);
  EXPECT_EQ(tracker.Launched(1), 1U);
  EXPECT_EQ(tracker.Launched(999), std::nullopt);
}

TEST_F(KernelTrackerTest, TheFrontierAdvancesInOrder) {
  KernelTracker tracker = Tracker(0, 0, 0);
  for (int i = 0; i < 4; ++i) tracker.Launched(0);
  EXPECT_EQ(tracker.Terminated(2), 0U);
  EXPECT_EQ(tracker.Terminated(3), 0U);
  EXPECT_EQ(tracker.Terminated(1), 3U);
  EXPECT_EQ(tracker.Terminated(1), 3U);   // repeated
  EXPECT_EQ(tracker.Terminated(99), 3U);  // of another tracker
  EXPECT_EQ(tracker.Terminated(4), 4U);
  EXPECT_EQ(tracker.frontier(), 4U);
}

TEST_F(KernelTrackerTest, KernelsWeighWhatWasAllocatedForThem) {
  // Bytes count at least 16386.
  KernelTracker tracker = Tracker(1, 100, 4);
  tracker.Launched(0);
  tracker.Launched(3 * 16386);
  EXPECT_FALSE(tracker.HasTooMany());  // 1 + 3
  tracker.Launched(0);
  EXPECT_TRUE(tracker.HasTooMany());
  tracker.Terminated(2);
  EXPECT_FALSE(tracker.HasTooMany());
  tracker.Launched(std::size_t{1} << 40);  // at most 4
  tracker.Terminated(1);
  tracker.Terminated(3);
  EXPECT_FALSE(tracker.HasTooMany());
}

// R38 with R41: memory freed before a kernel is safe after the kernel
// completes.
TEST_F(KernelTrackerTest, ItsFrontierMakesMemorySafe) {
  KernelTracker tracker = Tracker(0, 0, 0);
  BfcOptions options = BfcWhole(512);
  options.counter = counter_;
  BfcPool pool(options);
  const auto taken = pool.TakeMany({256, 256});
  pool.Free(taken[0]);                                // 1
  const std::uint64_t kernel = *tracker.Launched(0);  // 2
  pool.Free(taken[1]);                                // 3
  const std::uint64_t second = *tracker.Launched(0);  // 4
  Request request{512};
  request.freed_before = 1;
  pool.bfc().SetSafeFrontier(tracker.Terminated(kernel));
  EXPECT_EQ(pool.Take(request), nullptr);
  pool.bfc().SetSafeFrontier(tracker.Terminated(second));
  EXPECT_NE(pool.Take(request), nullptr);
}

TEST_F(KernelTrackerTest, ThreadsMayTrackTogether) {
  KernelTracker tracker = Tracker(0, 0, 1000);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 500; ++j) tracker.Terminated(*tracker.Launched(8));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(tracker.frontier(), 2000U);
  EXPECT_FALSE(tracker.HasTooMany());
}

}  // namespace
}  // namespace strata
