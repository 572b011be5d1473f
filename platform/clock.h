#ifndef STRATA_PLATFORM_CLOCK_H_
#define STRATA_PLATFORM_CLOCK_H_

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "strata/platform/require_cxx20.h"

namespace strata {

// What time it is, and waiting for it: the seam through which tests control
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

  // Waits until `wake` is notified or Now() reaches `deadline`, with `lock`
  // (held before and after) released meanwhile. May return earlier: the caller
  // looks again at what it waits for.
  virtual void WaitUntil(std::condition_variable& wake,
                         std::unique_lock<std::mutex>& lock,
                         std::chrono::nanoseconds deadline) = 0;

  // The machine's steady clock. Lives as long as the process.
  static Clock& Steady();
};

}  // namespace strata

#endif  // STRATA_PLATFORM_CLOCK_H_
