#include "strata/tests/testing/manual_clock.h"

#include <algorithm>

namespace strata {

void ManualClock::WaitUntil(std::condition_variable& wake,
                            std::unique_lock<std::mutex>& lock,
                            std::chrono::nanoseconds deadline) {
  Waiter waiter{&wake, lock.mutex(), deadline};
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (Now() >= deadline) return;
    waiters_.push_back(&waiter);
    ++waits_;
    changed_.notify_all();
  }
  wake.wait(lock);
  // Advance may be about to lock the caller's mutex.
  lock.unlock();
  {
    std::unique_lock<std::mutex> guard(mutex_);
    changed_.wait(guard, [this] { return advancing_ == 0; });
    waiters_.erase(std::find(waiters_.begin(), waiters_.end(), &waiter));
  }
  lock.lock();
}

void ManualClock::Advance(std::chrono::nanoseconds by) {
  std::vector<Waiter*> due;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    now_ns_ += by.count();
    for (Waiter* waiter : waiters_) {
      if (waiter->deadline <= Now()) due.push_back(waiter);
    }
    ++advancing_;
  }
  for (Waiter* waiter : due) {
    const std::lock_guard<std::mutex> guard(*waiter->mutex);
    waiter->wake->notify_all();
  }
  const std::lock_guard<std::mutex> guard(mutex_);
  --advancing_;
  changed_.notify_all();
}

std::uint64_t ManualClock::waits() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return waits_;
}

void ManualClock::AwaitWaiters(std::size_t count) {
  std::unique_lock<std::mutex> guard(mutex_);
  changed_.wait(guard, [&] { return waiters_.size() >= count; });
}

}  // namespace strata
