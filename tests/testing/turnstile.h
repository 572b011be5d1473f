#ifndef STRATA_TESTS_TESTING_TURNSTILE_H_
#define STRATA_TESTS_TESTING_TURNSTILE_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <random>
#include <vector>

#include "strata/base/clock.h"

namespace strata {

// Lets threads run one at a time, in an order drawn from a seed, so that a
// schedule can be repeated. It is also a clock that stands still. A thread that
// waits on the clock wakes at each of its turns to check again, notified or
// not.
//
// Model: every thread calls Start, then Step at each point where another thread
//   may take over, then Finish. Threads are stuck when all remaining threads
//   only check again and none makes progress. Then the clock jumps past every
//   deadline.
// Threads: as many as `threads`, each with its own number.
class Turnstile final : public Clock {
 public:
  Turnstile(std::size_t threads, std::uint64_t seed)
      : random_(seed), states_(threads, State::kComing) {}

  // Waits until every thread has started, and then for the first turn.
  void Start(std::size_t thread);
  void Step();
  // With `together`, returns after every thread has finished.
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
  // Both need mutex_.
  void PassTurn();
  std::size_t Count(State state) const;

  mutable std::mutex mutex_;
  std::condition_variable turn_came_;  // with mutex_, like all members below
  std::mt19937_64 random_;
  std::vector<State> states_;
  std::size_t turn_ = 0;
  std::uint64_t steps_ = 0;
  std::size_t fruitless_ = 0;  // turns since a thread made progress
  bool stuck_ = false;
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_TURNSTILE_H_
