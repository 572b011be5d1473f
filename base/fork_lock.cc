#include "strata/base/fork_lock.h"

#include <pthread.h>

#include <atomic>

namespace strata {
namespace {

constinit std::atomic<ForkLock*> g_last{nullptr};
// The last of the locks that this thread holds while it forks. Threads that
// fork at the same time acquire their common locks in the same order.
thread_local constinit ForkLock* t_held = nullptr;

}  // namespace

ForkLock::ForkLock(void* lock, OnLock take, OnLock leave,
                   void (*in_child)()) noexcept
    : lock_(lock), take_(take), leave_(leave), in_child_(in_child) {
  // pthread_atfork fails only if memory is exhausted. Then a child of a busy
  // parent may wait forever, as it would without fork locks.
  static const int status = pthread_atfork(&Prepare, &Parent, &Child);
  static_cast<void>(status);
  next_ = g_last.load(std::memory_order_relaxed);
  while (!g_last.compare_exchange_weak(next_, this, std::memory_order_acq_rel,
                                       std::memory_order_relaxed)) {
  }
}

void ForkLock::Prepare() {
  t_held = g_last.load(std::memory_order_acquire);
  for (ForkLock* each = t_held; each != nullptr; each = each->next_) {
    each->take_(each->lock_);
  }
}

void ForkLock::Parent() {
  for (ForkLock* each = t_held; each != nullptr; each = each->next_) {
    each->leave_(each->lock_);
  }
  t_held = nullptr;
}

void ForkLock::Child() {
  for (ForkLock* each = t_held; each != nullptr; each = each->next_) {
    if (each->in_child_ != nullptr) each->in_child_();
  }
  Parent();
}

}  // namespace strata
