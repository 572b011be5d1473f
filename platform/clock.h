#ifndef STRATA_PLATFORM_CLOCK_H_
#define STRATA_PLATFORM_CLOCK_H_

#include <chrono>

namespace strata {

// What time it is: the seam through which tests control waiting and stamps.
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

  // The machine's steady clock. Lives as long as the process.
  static Clock& Steady();
};

}  // namespace strata

#endif  // STRATA_PLATFORM_CLOCK_H_
