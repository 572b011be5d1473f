#ifndef STRATA_ALLOCATION_HIT_LENT_LOCK_H_
#define STRATA_ALLOCATION_HIT_LENT_LOCK_H_

#include <atomic>
#include <mutex>

#include "strata/allocation/hit/chain_lock.h"

namespace strata {

// The lock of an object that several chains use, such as a shared strategy. It
// can be lent to one of the chains. While it is lent, the lock of that chain
// guards the object, and its holder needs no second lock. Meets BasicLockable.
//
// Model: one lock guards the object at a time: the own lock or the lock of a
//   chain. The choice changes only while both are held, so it is stable for the
//   holder of either. A thread that acquires the lock it read checks the choice
//   again. The lock of a chain is always acquired before the own lock. The
//   holder of a chain's lock may lock this lock unless it is lent to that
//   chain. It must not call LendTo() or TakeBack(). There is no deadlock: a
//   thread that holds a chain's lock and waits here waits for a lock that
//   became the guard before the thread acquired the chain's lock.
// Threads: any thread. The memory of a lock that this was lent to is never
//   freed (Lasting), but another chain may use that lock after TakeBack().
// Cost: one load more than the lock. LendTo() and TakeBack(): two locks.
class LentLock {
 public:
  // `own` must outlive this object.
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

  // True if `lock` guards the object now. If the caller holds `lock`, the
  // result is valid until it unlocks `lock`.
  bool IsLentTo(const ChainLock& lock) const noexcept {
    return guard_.load(std::memory_order_relaxed) == &lock;
  }
  bool is_lent() const noexcept { return !IsLentTo(own_); }

  // Lends the lock to `lock`, unless it is lent already.
  void LendTo(ChainLock& lock) noexcept {
    if (is_lent()) return;
    const std::lock_guard<ChainLock> chain(lock);
    const std::lock_guard<ChainLock> own(own_);
    if (!is_lent()) guard_.store(&lock, std::memory_order_release);
  }
  // Ends the loan, if there is one.
  void TakeBack() noexcept {
    while (true) {
      ChainLock& lock = *guard_.load(std::memory_order_acquire);
      if (&lock == &own_) return;
      const std::lock_guard<ChainLock> chain(lock);
      // Another thread may have ended the loan and lent the lock again.
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

#endif  // STRATA_ALLOCATION_HIT_LENT_LOCK_H_
