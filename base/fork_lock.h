#ifndef STRATA_BASE_FORK_LOCK_H_
#define STRATA_BASE_FORK_LOCK_H_

#include "strata/base/require_cxx20.h"

namespace strata {

// A lock of the whole process that is free in a forked child. The child has
// only the forking thread, so a lock that another thread held would stay held
// forever.
//
// Model: a fork first acquires all fork locks, and releases them afterwards in
//   the parent and in the child. So the data that they guard is consistent in
//   the child. Locks of objects are not handled like this: see
//   docs/host_memory.md for the calls that a child may make.
// Threads: any thread. While a thread holds one of these locks it acquires no
//   other one and waits for no other thread.
// Cost: only at construction and at fork.
class ForkLock {
 public:
  // `lock` is BasicLockable. `lock` and this object are never destroyed. In the
  // child, a non-null `in_child` is called before the lock is released.
  template <class Lock>
  explicit ForkLock(Lock& lock, void (*in_child)() = nullptr) noexcept
      : ForkLock(
            &lock, [](void* l) { static_cast<Lock*>(l)->lock(); },
            [](void* l) { static_cast<Lock*>(l)->unlock(); }, in_child) {}
  ForkLock(const ForkLock&) = delete;
  ForkLock& operator=(const ForkLock&) = delete;

 private:
  using OnLock = void (*)(void*);

  ForkLock(void* lock, OnLock take, OnLock leave, void (*in_child)()) noexcept;
  static void Prepare();
  static void Parent();
  static void Child();

  void* const lock_;
  const OnLock take_;
  const OnLock leave_;
  void (*const in_child_)();
  ForkLock* next_ = nullptr;  // a lock that was constructed earlier
};

}  // namespace strata

#endif  // STRATA_BASE_FORK_LOCK_H_
