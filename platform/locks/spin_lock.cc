#include "strata/platform/locks/spin_lock.h"

#include <thread>

namespace strata {

void SpinWait::Once() {
  constexpr int kSpins = 64;
  if (spins_ < kSpins) {
    ++spins_;
    std::atomic_signal_fence(std::memory_order_seq_cst);
  } else {
    std::this_thread::yield();
  }
}

void SpinLock::LockSlow() {
  // Waiters only read, and write once the lock looks free. So the copies of the
  // cache line stay shared.
  for (SpinWait wait; locked_.load(std::memory_order_relaxed) ||
                      locked_.exchange(true, std::memory_order_acquire);) {
    wait.Once();
  }
}

}  // namespace strata
