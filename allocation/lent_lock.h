#ifndef STRATA_ALLOCATION_LENT_LOCK_H_
#define STRATA_ALLOCATION_LENT_LOCK_H_

#include <atomic>
#include <mutex>

#include "strata/allocation/chain_lock.h"

namespace strata {

// The lock of what several chains use, which may be lent to one of them: its
// lock is then this one, too, so that who holds that needs no second one.
//
// Model: one lock guards at a time, the own one or a chain's. Which one that is
//   changes under both: so it stays as it is for who holds either, and who
//   takes the one that he read looks again. A chain's lock is always taken
//   before the own one; who holds a chain's may lock this unless it is lent to
//   that one, and must not lend it or take it back. That there is no cycle:
//   who waits here with a chain's lock held waits for one that became this
//   lock's before he had his.
//   Meets BasicLockable.
// Threads: any thread. A lock that this was lent to is never freed (Lasting),
//   but may come to be another chain's after TakeBack.
// Cost: a load more than the lock. To lend and to take back: two locks.
class LentLock {
 public:
  // `own` outlives this.
  explicit LentLock(ChainLock& own) : own_(own), guard_(&own) {}
  LentLock(const LentLock&) = delete;
  LentLock& operator=(const LentLock&) = delete;

  void lock() {
    while (true) {
      ChainLock& guard = *guard_.load(std::memory_order_acquire);
      guard.lock();
      if (IsLentTo(guard)) return;
      guard.unlock();
    }
  }
  void unlock() { guard_.load(std::memory_order_relaxed)->unlock(); }

  // Whether `lock` is this one now. For who holds it: until he unlocks it.
  bool IsLentTo(const ChainLock& lock) const noexcept {
    return guard_.load(std::memory_order_relaxed) == &lock;
  }
  bool is_lent() const noexcept { return !IsLentTo(own_); }

  // From now on, unless it is lent already.
  void LendTo(ChainLock& lock) noexcept {
    if (is_lent()) return;
    const std::lock_guard<ChainLock> chain(lock);
    const std::lock_guard<ChainLock> own(own_);
    if (!is_lent()) guard_.store(&lock, std::memory_order_release);
  }
  // It is lent to nobody any more.
  void TakeBack() noexcept {
    while (true) {
      ChainLock& lock = *guard_.load(std::memory_order_acquire);
      if (&lock == &own_) return;
      const std::lock_guard<ChainLock> chain(lock);
      // Another thread may have been first, and lent it again.
      if (!IsLentTo(lock)) continue;
      const std::lock_guard<ChainLock> own(own_);
      guard_.store(&own_, std::memory_order_release);
    }
  }

 private:
  ChainLock& own_;
  std::atomic<ChainLock*> guard_;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_LENT_LOCK_H_
