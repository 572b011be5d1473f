#include "strata/base/clock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "strata/tests/testing/manual_clock.h"

namespace strata {
namespace {

TEST(ClockTest, SteadyClockMovesForwardOnly) {
  const auto first = Clock::Steady().Now();
  auto last = first;
  while (last == first) {
    const auto now = Clock::Steady().Now();
    ASSERT_GE(now, last);
    last = now;
  }
  EXPECT_GT(last, first);
}

TEST(ClockTest, SteadyClockIsOneObject) {
  EXPECT_EQ(&Clock::Steady(), &Clock::Steady());
}

TEST(ClockTest, SteadyClockWaitsUntilTheDeadline) {
  std::mutex mutex;
  std::condition_variable wake;
  std::unique_lock<std::mutex> lock(mutex);
  const auto deadline = Clock::Steady().Now() + std::chrono::milliseconds(1);
  while (Clock::Steady().Now() < deadline) {
    Clock::Steady().WaitUntil(wake, lock, deadline);
    ASSERT_TRUE(lock.owns_lock());
  }
  // A wait with a past deadline returns at once.
  Clock::Steady().WaitUntil(wake, lock, deadline);
  EXPECT_TRUE(lock.owns_lock());
}

// Both ends of a wait, on any clock.
template <class AnyClock>
void ExpectANotifiedThreadReturns(AnyClock& clock) {
  std::mutex mutex;
  std::condition_variable wake;
  bool done = false;  // guarded by mutex
  std::thread waiter([&] {
    std::unique_lock<std::mutex> lock(mutex);
    while (!done) {
      clock.WaitUntil(wake, lock, clock.Now() + std::chrono::hours(1));
    }
  });
  {
    const std::lock_guard<std::mutex> guard(mutex);
    done = true;
    wake.notify_one();
  }
  waiter.join();
}

TEST(ClockTest, ANotifiedThreadReturns) {
  ExpectANotifiedThreadReturns(Clock::Steady());
  ManualClock manual;
  ExpectANotifiedThreadReturns(manual);
}

TEST(ManualClockTest, WakesWhoseDeadlineIsReachedAndNobodyElse) {
  ManualClock clock;
  std::mutex mutex;
  std::condition_variable wakes[2];
  std::atomic<int> returned{0};
  const auto wait = [&](std::condition_variable& wake, int hours) {
    std::unique_lock<std::mutex> lock(mutex);
    clock.WaitUntil(wake, lock, std::chrono::hours(hours));
    ++returned;
  };
  std::thread first(wait, std::ref(wakes[0]), 1);
  std::thread second(wait, std::ref(wakes[1]), 2);
  clock.AwaitWaiters(2);
  clock.Advance(std::chrono::minutes(59));
  EXPECT_EQ(returned, 0);
  clock.Advance(std::chrono::minutes(1));
  first.join();
  EXPECT_EQ(returned, 1);
  clock.Advance(std::chrono::hours(1));
  second.join();
  EXPECT_EQ(clock.waits(), 2U);
}

TEST(ManualClockTest, DoesNotWaitForATimeThatIsPast) {
  ManualClock clock(std::chrono::hours(2));
  std::mutex mutex;
  std::condition_variable wake;
  std::unique_lock<std::mutex> lock(mutex);
  clock.WaitUntil(wake, lock, std::chrono::hours(2));
  EXPECT_EQ(clock.waits(), 0U);
}

}  // namespace
}  // namespace strata
