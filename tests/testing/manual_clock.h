#ifndef STRATA_TESTS_TESTING_MANUAL_CLOCK_H_
#define STRATA_TESTS_TESTING_MANUAL_CLOCK_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "strata/base/clock.h"

namespace strata {

// A clock that stands still until a test advances it. A wait returns when it is
// notified, or when the test advances the clock past its deadline.
//
// Threads: any thread.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(std::chrono::nanoseconds start = {})
      : now_ns_(start.count()) {}

  std::chrono::nanoseconds Now() const override {
    return std::chrono::nanoseconds(now_ns_.load());
  }
  void WaitUntil(std::condition_variable& wake,
                 std::unique_lock<std::mutex>& lock,
                 std::chrono::nanoseconds deadline) override;

  // Advances the clock, and wakes each waiter with a reached deadline.
  void Advance(std::chrono::nanoseconds by);

  // Number of waits that began.
  std::uint64_t waits() const;
  // Returns once `count` threads wait at the same time.
  void AwaitWaiters(std::size_t count);

 private:
  struct Waiter {
    std::condition_variable* wake;
    std::mutex* mutex;
    std::chrono::nanoseconds deadline;
  };

  std::atomic<std::int64_t> now_ns_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;  // with mutex_
  std::vector<Waiter*> waiters_;     // guarded by mutex_
  std::uint64_t waits_ = 0;          // guarded by mutex_
  int advancing_ = 0;  // calls that use waiters; guarded by mutex_
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_MANUAL_CLOCK_H_
