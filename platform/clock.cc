#include "strata/platform/clock.h"

namespace strata {
namespace {

class SteadyClock final : public Clock {
 public:
  std::chrono::nanoseconds Now() const override {
    return std::chrono::steady_clock::now().time_since_epoch();
  }
};

}  // namespace

Clock& Clock::Steady() {
  // Never destroyed: destructors of static objects may still ask.
  static SteadyClock* const clock = new SteadyClock;
  return *clock;
}

}  // namespace strata
