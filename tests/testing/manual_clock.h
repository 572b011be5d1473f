#ifndef STRATA_TESTS_TESTING_MANUAL_CLOCK_H_
#define STRATA_TESTS_TESTING_MANUAL_CLOCK_H_

#include <atomic>
#include <chrono>
#include <cstdint>

#include "strata/platform/clock.h"

namespace strata {

// A clock that stands still until a test moves it.
//
// Threads: any thread.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(std::chrono::nanoseconds start = {})
      : now_ns_(start.count()) {}

  std::chrono::nanoseconds Now() const override {
    return std::chrono::nanoseconds(now_ns_.load());
  }
  void Advance(std::chrono::nanoseconds by) { now_ns_ += by.count(); }

 private:
  std::atomic<std::int64_t> now_ns_;
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_MANUAL_CLOCK_H_
