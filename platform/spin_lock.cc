#include "strata/platform/spin_lock.h"

#include <thread>

namespace strata {

thread_local constinit int t_held_locks = 0;

void SpinLock::LockSlow() {
  // About a critical section's length; then the holder has probably lost its
  // core, and may need this one to go on.
  constexpr int kSpins = 64;
  for (int spins = 0;; ++spins) {
    // Waiters read, and write only when the lock looks free: their copies of
    // the line stay shared.
    if (!locked_.load(std::memory_order_relaxed) &&
        !locked_.exchange(true, std::memory_order_acquire)) {
      return;
    }
    if (spins < kSpins) {
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
      std::this_thread::yield();
    }
  }
}

}  // namespace strata
