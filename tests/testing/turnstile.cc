#include "strata/tests/testing/turnstile.h"

#include <algorithm>
#include <thread>

namespace strata {
namespace {

thread_local constinit std::size_t t_number = 0;

// Turns without progress, per thread, before the threads count as stuck. Enough
// to notice a thread that is ending.
constexpr std::size_t kFruitlessTurns = 1 << 12;

}  // namespace

std::size_t Turnstile::Count(State state) const {
  return static_cast<std::size_t>(
      std::count(states_.begin(), states_.end(), state));
}

void Turnstile::PassTurn() {
  const std::size_t able = Count(State::kReady) + Count(State::kWaiting);
  if (able == 0) return;
  std::size_t skip = random_() % able;
  for (turn_ = 0;; ++turn_) {
    const bool is_able =
        states_[turn_] == State::kReady || states_[turn_] == State::kWaiting;
    if (is_able && skip-- == 0) break;
  }
  ++steps_;
  turn_came_.notify_all();
}

void Turnstile::Start(std::size_t thread) {
  t_number = thread;
  std::unique_lock<std::mutex> lock(mutex_);
  states_[thread] = State::kReady;
  if (Count(State::kComing) == 0) PassTurn();
  turn_came_.wait(
      lock, [&] { return Count(State::kComing) == 0 && turn_ == thread; });
}

void Turnstile::Yield(State state) {
  const std::size_t self = t_number;
  std::unique_lock<std::mutex> lock(mutex_);
  states_[self] = state;
  if (state == State::kReady) {
    fruitless_ = 0;
  } else if (Count(State::kReady) == 0 &&
             ++fruitless_ > kFruitlessTurns * states_.size()) {
    stuck_ = true;
  }
  PassTurn();
  if (fruitless_ != 0) {
    // A thread that is ending takes no turns, but may need the mutex.
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
  }
  turn_came_.wait(lock, [&] { return turn_ == self; });
}

void Turnstile::Step() { Yield(State::kReady); }

void Turnstile::Finish(bool together) {
  std::unique_lock<std::mutex> lock(mutex_);
  states_[t_number] = State::kDone;
  fruitless_ = 0;
  turn_ = states_.size();
  PassTurn();
  turn_came_.notify_all();
  if (!together) return;
  turn_came_.wait(lock, [&] { return Count(State::kDone) == states_.size(); });
}

bool Turnstile::is_stuck() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return stuck_;
}

std::uint64_t Turnstile::steps() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return steps_;
}

std::chrono::nanoseconds Turnstile::Now() const {
  return is_stuck() ? std::chrono::hours(1000) : std::chrono::nanoseconds(0);
}

void Turnstile::WaitUntil(std::condition_variable& /*wake*/,
                          std::unique_lock<std::mutex>& lock,
                          std::chrono::nanoseconds /*deadline*/) {
  lock.unlock();
  Yield(State::kWaiting);
  lock.lock();
}

}  // namespace strata
