#ifndef STRATA_PLATFORM_LOCKS_SPIN_LOCK_H_
#define STRATA_PLATFORM_LOCKS_SPIN_LOCK_H_

#include <atomic>

#include "strata/base/this_thread.h"

namespace strata {

// Number of Strata's locks that the calling thread holds now. A device may
// assert that it is 0: no driver call is made with a lock held.
int HeldLocks() noexcept;

// Waits for another core to leave a critical section. Spins for about as long
// as a critical section takes. After that the holder has probably lost its
// core, so the waiter yields its own.
class SpinWait {
 public:
  // Called between two checks of the condition.
  void Once();

 private:
  int spins_ = 0;
};

// A lock for critical sections of a few dozen instructions. A section contains
// no system call, no callback and no allocation that may wait.
//
// Model: test-and-test-and-set; a waiter spins briefly, then yields its core.
//   Meets BasicLockable and Lockable. Not recursive, not fair.
// Cost: 8 ns for an uncontended pair (hotpath.md §2). The store in unlock() is
//   the last access, so the last user of an object may delete it right after.
class SpinLock {
 public:
  SpinLock() = default;
  SpinLock(const SpinLock&) = delete;
  SpinLock& operator=(const SpinLock&) = delete;

  // ThreadState::held_words counts the lock. The lock that the thread holds as
  // its owner (biased_lock.h) does not count itself; HeldLocks adds it.
  void lock() {
    if (locked_.exchange(true, std::memory_order_acquire)) LockSlow();
    ++ThisThread().held_words;
  }
  bool try_lock() {
    if (locked_.exchange(true, std::memory_order_acquire)) return false;
    ++ThisThread().held_words;
    return true;
  }
  void unlock() {
    --ThisThread().held_words;
    locked_.store(false, std::memory_order_release);
  }

 private:
  void LockSlow();

  std::atomic<bool> locked_{false};
};

}  // namespace strata

#endif  // STRATA_PLATFORM_LOCKS_SPIN_LOCK_H_
