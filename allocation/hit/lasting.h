#ifndef STRATA_ALLOCATION_HIT_LASTING_H_
#define STRATA_ALLOCATION_HIT_LASTING_H_

#include <mutex>
#include <utility>

#include "strata/allocation/hit/chain_lock.h"
#include "strata/base/fork_lock.h"
#include "strata/platform/locks/spin_lock.h"

namespace strata {

// A T with a lock that stays valid for ever, for threads that may reach the
// lock after the guarded object is gone.
//
// Model: Ts are recycled, never freed. A thread that found the lock of a T
//   while it had an owner may still acquire the lock later. It then checks the
//   present owner. At worst it makes another owner wait for this check. A T has
//   a ChainLock `lock`, made by its constructor and renewed for each next
//   owner, and Begin(), which resets all other members.
// Threads: any thread.
// Cost: Begin(), and a heap call if no unused T is in stock.
template <class T>
class Lasting {
 public:
  // Errors: std::bad_alloc.
  template <class... Args>
  explicit Lasting(bool may_bias = false, Args... args)
      : stock_(StockOf(may_bias)), shell_(stock_.Take()) {
    if (shell_ == nullptr) {
      shell_ = new Shell(may_bias);
    } else if (may_bias) {
      shell_->value.lock.Renew();
    }
    shell_->value.Begin(args...);
  }
  Lasting(const Lasting&) = delete;
  Lasting& operator=(const Lasting&) = delete;
  // The lock must be closed, and not held except by such late threads.
  ~Lasting() { stock_.Give(shell_); }

  T& operator*() const { return shell_->value; }
  T* operator->() const { return &shell_->value; }

 private:
  struct Shell {
    explicit Shell(bool may_bias) : value(may_bias) {}

    T value;
    Shell* next = nullptr;  // in the stock
  };

  // The Ts without owner. One stock per kind of lock, because a lock that may
  // be biased is built differently.
  class Stock {
   public:
    Shell* Take() {
      const std::lock_guard<SpinLock> guard(lock_);
      return first_ != nullptr ? std::exchange(first_, first_->next) : nullptr;
    }
    void Give(Shell* shell) {
      const std::lock_guard<SpinLock> guard(lock_);
      shell->next = std::exchange(first_, shell);
    }

   private:
    SpinLock lock_;
    const ForkLock fork_lock_{lock_};
    Shell* first_ = nullptr;  // guarded by lock_
  };

  static Stock& StockOf(bool may_bias) {
    // Never destroyed: chains may end during static destruction.
    static auto* const stocks = new Stock[2];
    return stocks[may_bias ? 1 : 0];
  }

  Stock& stock_;
  Shell* shell_;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_HIT_LASTING_H_
