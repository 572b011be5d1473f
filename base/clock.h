#ifndef STRATA_BASE_CLOCK_H_
#define STRATA_BASE_CLOCK_H_

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "strata/base/require_cxx20.h"

namespace strata {

// Returns the time and waits for points in time. Tests replace it to control
// both.
//
// Threads: any thread.
class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;

  // Time since an arbitrary origin; never decreases.
  virtual std::chrono::nanoseconds Now() const = 0;

  // Waits until `wake` is notified or Now() reaches `deadline`. `lock` is held
  // before and after the call, and released while it waits. The call may return
  // earlier: the caller checks its condition again.
  virtual void WaitUntil(std::condition_variable& wake,
                         std::unique_lock<std::mutex>& lock,
                         std::chrono::nanoseconds deadline) = 0;

  // The machine's steady clock. It lives as long as the process.
  static Clock& Steady();
};

}  // namespace strata

#endif  // STRATA_BASE_CLOCK_H_
