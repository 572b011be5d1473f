#ifndef STRATA_TESTS_TESTING_TURNSTILE_H_
#define STRATA_TESTS_TESTING_TURNSTILE_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <random>
#include <vector>

#include "strata/platform/clock.h"

namespace strata {

// Lets threads run one at a time, in an order drawn from a seed: a schedule
// that can be repeated. As a clock it stands still; a thread that waits on it
// is woken to look again whenever its turn comes, notified or not.
//
// Model: every thread calls Start, then Step wherever another one may take
// over,
//   then Finish. When all threads that are left only look again and again
//   without one of them going on, they are stuck: then the clock jumps past
//   every deadline.
// Threads: as many as `threads`, each with a number of its own.
class Turnstile final : public Clock {
 public:
  Turnstile(std::size_t threads, std::uint64_t seed)
      : random_(seed), states_(threads, State::kComing) {}

  // Waits until every thread has started, and for the first turn.
  void Start(std::size_t thread);
  void Step();
  // With `together`, returns once every thread has finished.
  void Finish(bool together);

  bool is_stuck() const;
  std::uint64_t steps() const;

  std::chrono::nanoseconds Now() const override;
  void WaitUntil(std::condition_variable& wake,
                 std::unique_lock<std::mutex>& lock,
                 std::chrono::nanoseconds deadline) override;

 private:
  enum class State { kComing, kReady, kWaiting, kDone };

  void Yield(State state);
  // Hold mutex_.
  void PassTurn();
  std::size_t Count(State state) const;

  mutable std::mutex mutex_;
  std::condition_variable turn_came_;  // with mutex_, as all below
  std::mt19937_64 random_;
  std::vector<State> states_;
  std::size_t turn_ = 0;
  std::uint64_t steps_ = 0;
  std::size_t fruitless_ = 0;  // turns since a thread went on
  bool stuck_ = false;
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_TURNSTILE_H_
