#include "strata/base/clock.h"

namespace strata {
namespace {

class SteadyClock final : public Clock {
 public:
  std::chrono::nanoseconds Now() const override {
    return std::chrono::steady_clock::now().time_since_epoch();
  }
  void WaitUntil(std::condition_variable& wake,
                 std::unique_lock<std::mutex>& lock,
                 std::chrono::nanoseconds deadline) override {
    wake.wait_until(lock, std::chrono::steady_clock::time_point(deadline));
  }
};

}  // namespace

Clock& Clock::Steady() {
  // Never destroyed: destructors of static objects may still use it.
  static SteadyClock* const clock = new SteadyClock;
  return *clock;
}

}  // namespace strata
