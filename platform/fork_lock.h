#ifndef STRATA_PLATFORM_FORK_LOCK_H_
#define STRATA_PLATFORM_FORK_LOCK_H_

#include "strata/platform/require_cxx20.h"

namespace strata {

// A lock of the whole process that a forked child finds free: the child has
// the forking thread only, so what another thread held would stay held.
//
// Model: who forks takes every such lock first, and leaves them all afterwards,
//   in the parent and in the child. So what they guard is whole in the child.
//   Locks of objects are not kept so: see docs/host_memory.md for what a child
//   may do.
// Threads: any thread. No thread takes one of these locks, or waits for another
//   thread, while it holds one.
// Cost: none but to make it, and to fork.
class ForkLock {
 public:
  // `lock`, which is BasicLockable, and this live for ever. In the child,
  // `in_child`, unless that is null, is called before the lock is left.
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
  ForkLock* next_ = nullptr;  // one that was made before
};

}  // namespace strata

#endif  // STRATA_PLATFORM_FORK_LOCK_H_
